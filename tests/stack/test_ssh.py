"""A machine over SSH under the deployed template: EventBridge's minutes stop and start it."""

from __future__ import annotations

import json
import time

import pytest
from conftest import Deployed
from machines import MACHINE, NAME, Host, missing

pytestmark = pytest.mark.skipif(missing(), reason="needs /usr/sbin/sshd")


@pytest.fixture(scope="session")
def lab(cycled: Deployed) -> Host:
    """The host, once its machine has been stopped and started."""
    assert cycled.host is not None
    until = time.time() + 8 * 60
    while True:
        found = [command for command in cycled.host.commands() if "status" not in command]
        if f"start {NAME}" in found[1:]:
            return cycled.host
        assert time.time() < until, found
        time.sleep(2)


def test_its_commands_were_a_stop_and_then_a_start(lab: Host) -> None:
    found = [command for command in lab.commands() if not command.startswith("status ")]
    assert found[:2] == [f"stop {NAME}", f"start {NAME}"]


def test_its_stop_and_its_start_were_seen(lab: Host, cycled: Deployed) -> None:
    until = time.time() + 3 * 60
    while True:
        history = cycled.stack.items("history")
        seen = {one["direction"]["S"] for one in history if one["reference"]["S"] == MACHINE}
        if seen == {"stop", "start"}:
            return
        assert time.time() < until, seen
        time.sleep(2)


def test_no_log_has_the_host_the_key_or_the_user(lab: Host, cycled: Deployed) -> None:
    secrets = [f"127.0.0.1:{lab.port}", lab.host_key.split()[1], lab.key().splitlines()[1]]
    for function in ("dispatch", "stop", "start", "poll-status"):
        for line in cycled.stack.lines(function):
            text = json.dumps(line.fields)
            assert not any(secret in text for secret in secrets), text
