"""The units for systemd, judged by systemd's own tool."""

import re
import shutil
import subprocess

import pytest
from template import ROOT

PACKAGING = ROOT / "packaging"
SERVICES = ("offhours.service", "offhours-backup.service")
MOST_EXPOSED = 2.0

pytestmark = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")


@pytest.fixture
def units(tmp_path):
    """The units, with a program that is on this machine."""
    for unit in [*SERVICES, "offhours-backup.timer"]:
        text = (PACKAGING / unit).read_text()
        (tmp_path / unit).write_text(text.replace("/usr/bin/offhours", shutil.which("true")))
    return tmp_path


def analyzed(*arguments):
    command = ["systemd-analyze", *arguments]
    return subprocess.run(command, text=True, capture_output=True, check=False)


def test_systemd_has_nothing_to_say_about_a_unit(units):
    verified = analyzed("verify", *sorted(map(str, units.iterdir())))
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_exposed_to_hardly_anything(units, service):
    judged = analyzed("security", "--offline=true", str(units / service))
    (exposure,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", judged.stdout)
    assert float(exposure) <= MOST_EXPOSED
