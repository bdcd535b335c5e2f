"""The linter finds nothing in the template, and would find a fault."""

import subprocess

import pytest
from template import ROOT, SOURCE


def lint(*arguments: str) -> subprocess.CompletedProcess:
    command = ["cfn-lint", "--config-file", "infra/cfnlint.yaml", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_template_is_clean_down_to_the_informational_rules():
    done = lint()
    assert done.returncode == 0, done.stdout
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("written", "broken"),
    [
        ("Statistic: Maximum", "Statistic: Highest"),
        ("    UpdateReplacePolicy: Delete\n", ""),
        ("!Ref DeadLetters\n", "!Ref LostLetters\n"),
    ],
)
def test_a_template_with_a_fault_is_not(tmp_path, written, broken):
    text = SOURCE.read_text()
    assert written in text
    copy = tmp_path / "template.yaml"
    copy.write_text(text.replace(written, broken))
    assert lint("--template", str(copy)).returncode != 0
