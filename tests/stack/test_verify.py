"""The script that tries the stack on AWS, as far as an emulator goes."""

from subprocess import Popen

from rehearsal.emulator import Emulator


def test_the_script_for_aws_runs_to_its_end_and_removes_what_it_made(
    emulator: Emulator, verifying: Popen[str]
) -> None:
    stdout, stderr = verifying.communicate()
    report = stdout.rpartition("Report: an emulator")[2]
    assert verifying.returncode == 0, stdout + stderr
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
