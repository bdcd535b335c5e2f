"""What builds, deploys and checks is pinned."""

import re

import pytest
from template import ROOT

LOCKS = sorted([ROOT / "infra/build.txt", *(ROOT / "tests/python").glob("*.txt")])
#: Packages that are published as source only; none of them builds or deploys anything.
SOURCE_ONLY = {"localstack.txt": {"airspeed-ext", "crontab", "jsonpath-rw"}}
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
    options = set(re.findall(r"(?m)^--.*", text))
    source_only = {f"--no-binary {name}" for name in SOURCE_ONLY.get(lock.name, ())}
    assert options == {"--only-binary :all:", *source_only}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_file_has_what_was_asked_for(lock):
    asked = pins(lock.with_suffix(".in").read_text())
    assert asked
    assert asked.items() <= pins(lock.read_text()).items()


def test_every_environment_is_installed_by_its_hashes_alone():
    makefile = (ROOT / "Makefile").read_text()
    assert (
        "PIP_INSTALL := bin/pip install --quiet --disable-pip-version-check --no-deps" in makefile
    )
    installs = re.findall(r"@\$\(@D\)/(.*)", makefile)
    assert installs == [
        "$(PIP_INSTALL) --require-hashes -r $<",
        "$(PIP_INSTALL) --require-hashes -r $<",
        # Our own plugin, with the tools that are installed already.
        "$(PIP_INSTALL) --no-build-isolation --editable $(LOCALSTACK_PLUGIN)",
    ]
    for target in ("build", "deploy"):
        (needed,) = re.findall(rf"(?m)^{target}: (.*) ##", makefile)
        assert "$(BUILD_VENV)/installed" in needed
        assert "$(VENV)/installed" not in needed
