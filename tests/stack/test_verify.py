"""The script that tries the stack on AWS, as far as an emulator goes."""

import subprocess
import sys
from pathlib import Path

from rehearsal.emulator import Emulator
from rehearsal.stack import CHECKOUT, for_sam


def test_the_script_for_aws_runs_to_its_end_and_removes_what_it_made(
    emulator: Emulator, sam: Path
) -> None:
    python = sam.parent / Path(sys.executable).name
    command = [str(python), str(CHECKOUT / "infra" / "verify.py")]
    command += ["--yes", "--wait", "0.05", "--stack", "offhours-try", "--region", "eu-central-1"]
    done = subprocess.run(
        command, env=for_sam(emulator), capture_output=True, text=True, check=False
    )
    report = done.stdout.rpartition("Report: an emulator")[2]
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in report.splitlines()[2:] if line]
    assert len(lines) == 13, report
    ended = {line[:8].strip() for line in lines}
    assert ended == {"ok", "left out"}, report
    assert "FAILED" not in report
    assert all("only AWS can show it" in line for line in lines if line.startswith("left out"))
    stacks = emulator.client("cloudformation").list_stacks()["StackSummaries"]
    standing = {one["StackName"] for one in stacks if one["StackStatus"] != "DELETE_COMPLETE"}
    assert "offhours-try" not in standing
    tables = emulator.client("dynamodb").list_tables()["TableNames"]
    assert not [name for name in tables if name.startswith("offhours-try-")]
