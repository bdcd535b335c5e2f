"""What a release deploys without the checkout: the archives of the functions and the template."""

import json
import re
import subprocess
import zipfile

import package
import pytest
from deploy import FUNCTIONS, DeployError
from samcli.yamlhelper import yaml_parse
from samtranslator.translator.transform import transform
from template import REGION, ROOT, SOURCE, NoManagedPolicies


def test_each_function_is_read_from_its_archive_in_the_users_bucket(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    template = yaml_parse(package.packaged(SOURCE.read_text(), "1.2.3"))
    given = {name: str(one.get("Default", "")) for name, one in template["Parameters"].items()}
    resources = transform(template, given, NoManagedPolicies())["Resources"]
    functions = (one for one in resources.values() if one["Type"] == "AWS::Lambda::Function")
    assert [one["Properties"]["Code"] for one in functions] == [
        {
            "S3Bucket": {"Ref": "ArtifactsBucket"},
            "S3Key": {"Fn::Sub": f"offhours-1.2.3/{name}-${{Architecture}}.zip"},
        }
        for name in FUNCTIONS
    ]


def test_the_packaged_template_is_clean(tmp_path):
    file = tmp_path / "template.yaml"
    file.write_text(package.packaged(SOURCE.read_text(), "1.2.3"))
    command = ["cfn-lint", "--config-file", "infra/cfnlint.yaml", "--template", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_template_with_other_paths_is_not_packaged():
    text = SOURCE.read_text().replace("target/lambda/stop/", "target/stop/")
    with pytest.raises(DeployError, match="0 times"):
        package.packaged(text, "1.2.3")


def test_an_archive_is_the_same_each_time_and_has_a_program_that_may_be_run(tmp_path):
    program = tmp_path / "bootstrap"
    program.write_bytes(b"\x7fELF program")
    one, other = tmp_path / "one.zip", tmp_path / "other.zip"
    package.archive(program, one)
    program.touch()
    package.archive(program, other)
    assert one.read_bytes() == other.read_bytes()
    (entry,) = zipfile.ZipFile(one).infolist()
    assert entry.filename == "bootstrap"
    assert entry.external_attr >> 16 & 0o777 == 0o755


def test_the_policies_for_deploying_cover_every_service_of_the_template():
    page = (ROOT / "docs" / "deploying.md").read_text()
    policies = re.findall(r"(?s)```json\n(.*?)```", page)
    actions = []
    for statement in (one for policy in policies for one in json.loads(policy)["Statement"]):
        action = statement["Action"]
        actions += [action] if isinstance(action, str) else action
    allowed = {action.partition(":")[0] for action in actions}
    kinds = {one["Type"] for one in yaml_parse(SOURCE.read_text())["Resources"].values()}
    needed = {kind.split("::")[1].lower() for kind in kinds} - {"serverless"}
    # EventBridge stores the webhook's header as a secret.
    assert needed | {"cloudformation", "secretsmanager"} == allowed
