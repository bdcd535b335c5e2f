"""What builds, deploys and checks is pinned: Python packages, the toolchain, actions."""

import re
import tomllib

import pytest
import yaml
from template import ROOT

LOCKS = sorted([ROOT / "infra/build.txt", *(ROOT / "tests/python").glob("*.txt")])
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yaml"))
#: The rights of the one job that publishes; no other job has any.
RIGHTS = {
    "release.publish": {
        "contents": "write",
        "packages": "write",
        "id-token": "write",
        "attestations": "write",
    }
}
PINNED = r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?==(\S+)"


def named(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def pins(text: str) -> dict[str, str]:
    """Returns the version of each package that is pinned."""
    return {named(name): version for name, version in re.findall(f"(?m)^{PINNED}", text)}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_package_of_a_lock_file_has_a_version_and_hashes(lock):
    text = re.sub(r"(?m)^\s*#.*\n", "", lock.read_text())
    requirements = re.findall(r"(?m)^[^\s-][^\\\n]*(?:\\\n[^\\\n]*)*", text)
    assert len(requirements) > 10
    for requirement in requirements:
        assert re.match(PINNED, requirement), requirement
        assert "--hash=sha256:" in requirement, requirement
    assert not re.findall(r"(?m)^-.*", text), "options"


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_file_has_what_was_asked_for(lock):
    asked = pins(lock.with_suffix(".in").read_text())
    assert asked
    assert asked.items() <= pins(lock.read_text()).items()


def test_every_environment_is_installed_by_its_hashes_alone():
    makefile = (ROOT / "Makefile").read_text()
    assert "LOCKED := --require-hashes --only-binary :all:\n" in makefile
    assert re.findall(r"@\$\(@D\)/(.*)", makefile) == [
        "$(PIP_INSTALL) $(LOCKED) -r $<",
        # Published as source only; nothing of it builds or deploys.
        "$(PIP_INSTALL) $(LOCKED) --no-binary airspeed-ext,crontab,jsonpath-rw -r $<",
        # Our own plugin, with the tools that are installed already.
        "$(PIP_INSTALL) --no-build-isolation --editable $(LOCALSTACK_PLUGIN)",
    ]
    for target in ("build", "deploy"):
        (needed,) = re.findall(rf"(?m)^{target}: (.*) ##", makefile)
        assert "$(BUILD_VENV)/installed" in needed
        assert "$(VENV)/installed" not in needed


def test_the_toolchain_is_one_exact_version_that_the_dependencies_accept():
    toolchain = tomllib.loads((ROOT / "rust-toolchain.toml").read_text())["toolchain"]
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())
    channel = [int(part) for part in toolchain["channel"].split(".")]
    oldest = [int(part) for part in cargo["workspace"]["package"]["rust-version"].split(".")]
    assert len(channel) == 3
    assert channel >= oldest


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.name)
def test_actions_are_pinned_by_commit_and_hold_no_rights(workflow):
    text = workflow.read_text()
    for action in re.findall(r"uses: (.*)", text):
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
    parsed = yaml.safe_load(text)
    assert parsed["permissions"] == {"contents": "read"}
    for name, job in parsed["jobs"].items():
        assert job.get("permissions") == RIGHTS.get(f"{workflow.stem}.{name}")
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"] == {"persist-credentials": False}


def test_advisories_are_looked_for_every_week_and_on_pull_requests():
    workflow = (ROOT / ".github/workflows/advisories.yaml").read_text()
    # YAML 1.1 reads the key `on` as true.
    triggers = yaml.safe_load(workflow)[True]
    (scheduled,) = triggers["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", scheduled["cron"])
    assert "pull_request" in triggers
    assert "run: make advisories" in workflow


def test_what_may_publish_builds_and_tests_nothing():
    publish = yaml.safe_load((ROOT / ".github/workflows/release.yaml").read_text())["jobs"][
        "publish"
    ]
    assert publish["needs"] == "build"
    for step in publish["steps"]:
        assert not re.search(r"\b(make|cargo|pip|rustup|python3?)\b", step.get("run", ""))


@pytest.mark.parametrize("name", ["compose.yaml", "kubernetes.yaml"])
def test_a_release_names_its_image_in_each_container(name):
    """The workflow replaces what stands at the end of a line."""
    text = (ROOT / "packaging" / name).read_text()
    named = re.findall(r"image: (.*)", text)
    assert named
    assert set(named) == {"offhours"}
    workflow = (ROOT / ".github/workflows/release.yaml").read_text()
    assert "s|image: offhours$|" in workflow
    assert name in workflow
