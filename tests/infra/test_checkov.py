"""checkov finds faults in the template, and each exception is needed and has a reason."""

import itertools
import json
import os
import re
import subprocess
from pathlib import Path

import yaml
from resolved import resolved
from template import ROOT

CHECKOV = ROOT / ".checkov" / "bin" / "checkov"
SETTINGS = ROOT / "infra" / "checkov.yaml"
#: The settings before the exceptions, and the exceptions.
GENERAL, _, EXCEPTIONS = SETTINGS.read_text().partition("skip-check:\n")


def findings(template: dict, folder: Path, settings: str) -> set[tuple[str, str]]:
    """Returns the rules that a template breaks, each with the logical name of the resource."""
    assert CHECKOV.exists(), "`make lint-template` sets up checkov: run it first"
    file, config = folder / "template.json", folder / "settings.yaml"
    file.write_text(json.dumps(template))
    config.write_text(settings)
    done = subprocess.run(
        [CHECKOV, "--config-file", config, "--file", file, "--output", "json"],
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": str(folder), "PATH": os.environ["PATH"]},
    )
    failed = json.loads(done.stdout)["results"]["failed_checks"]
    assert done.returncode == (1 if failed else 0), done.stderr
    return {(one["check_id"], one["resource"].rpartition(".")[2]) for one in failed}


def exceptions_of_all() -> set[str]:
    """Returns the rules from which all resources are exempt."""
    return set(yaml.safe_load(EXCEPTIONS))


def exceptions_of_one(template: dict) -> dict[tuple[str, str], str]:
    """Returns the reasons in the resources' own Metadata, by rule and logical name."""
    return {
        (skip["id"], name): skip["comment"]
        for name, one in template["Resources"].items()
        for skip in one["Metadata"].get("checkov", {}).get("skip", [])
    }


def anywhere(action: str) -> dict:
    """Returns a statement that allows too much."""
    return {"Effect": "Allow", "Action": action, "Resource": "*"}


def test_faults_are_found_in_spite_of_the_exceptions(full, tmp_path):
    template = resolved(full)
    properties = {name: one["Properties"] for name, one in template["Resources"].items()}
    recovery = properties["ResourcesTable"]["PointInTimeRecoverySpecification"]
    recovery["PointInTimeRecoveryEnabled"] = False
    del properties["StopLog"]["RetentionInDays"]
    del properties["StopByRules"]["SourceArn"]
    (trust,) = properties["StartRole"]["AssumeRolePolicyDocument"]["Statement"]
    trust["Principal"] = {"AWS": "*"}
    # As written, these two have an `!If` among their statements.
    (policy,) = properties["PollStatusRole"]["Policies"]
    policy["PolicyDocument"]["Statement"].append(anywhere("iam:PutRolePolicy"))
    properties["AdminPolicy"]["PolicyDocument"]["Statement"].append(anywhere("ssm:GetParameter"))
    assert findings(template, tmp_path, SETTINGS.read_text()) == {
        ("CKV_AWS_28", "ResourcesTable"),
        ("CKV_AWS_66", "StopLog"),
        ("CKV_AWS_364", "StopByRules"),
        ("CKV_AWS_60", "StartRole"),
        ("CKV_AWS_109", "PollStatusRole"),
        ("CKV_AWS_108", "AdminPolicy"),
    }


def test_every_exception_is_needed_and_no_other(full, tmp_path):
    template = resolved(full)
    of_all, of_one = exceptions_of_all(), set(exceptions_of_one(template))
    for one in template["Resources"].values():
        del one["Metadata"]
    found = findings(template, tmp_path, GENERAL)
    assert {rule for rule, _ in found} >= of_all
    assert {(rule, name) for rule, name in found if rule not in of_all} == of_one


def test_every_exception_has_a_reason(full):
    for exception, reason in exceptions_of_one(resolved(full)).items():
        assert reason.strip(), exception
    lines = ["", *EXCEPTIONS.splitlines()]
    for before, line in itertools.pairwise(lines):
        if not line.startswith("  #"):
            assert re.fullmatch(r"  - CKV\w+", line)
            assert re.match(r"  # \w", before), f"{line.strip()} has no reason above it"
