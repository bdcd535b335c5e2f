"""The commands against a deployed stack, under each of the policies for people."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Deployed
from emulators import refusing
from places import EXAMPLE

Person = Callable[[str], tuple[str, str]]

POLICIES = ("viewer", "operator", "admin")
READS = (
    ("status",),
    ("why", "web-1"),
    ("list",),
    ("history",),
    ("saved", "--since", "1d"),
    ("config", "log"),
    ("activity",),
    ("config", "show"),
)
ASKS = (
    ("status", "--live"),
    ("status", "--refresh"),
    ("stop", "web-1", "--dry-run"),
    ("start", "web-1", "--dry-run"),
    ("override", "running", "web-1", "--for", "1m", "--yes"),
    ("override", "clear", "web-1"),
)
CHECKS = (("doctor",),)
ADMINISTERS = (("apply", "--yes"), ("backup",))

MAY = {
    "viewer": READS,
    "operator": READS + ASKS + CHECKS,
    "admin": READS + ASKS + CHECKS + ADMINISTERS,
}
MAY_NOT = {"viewer": ASKS + ADMINISTERS, "operator": ADMINISTERS, "admin": ()}


@pytest.fixture(scope="module")
def person(cycled: Deployed) -> Person:
    """A function that returns the key of a person who has all policies up to one."""
    iam = cycled.stack.emulator.client("iam")
    outputs = cycled.stack.outputs()
    keys: dict[str, tuple[str, str]] = {}

    def key_of(policy: str) -> tuple[str, str]:
        if policy not in keys:
            iam.create_user(UserName=policy)
            # Each policy adds to the ones before it.
            for part in POLICIES[: POLICIES.index(policy) + 1]:
                arn = outputs[f"{part.capitalize()}PolicyArn"]
                iam.attach_user_policy(UserName=policy, PolicyArn=arn)
            made = iam.create_access_key(UserName=policy)["AccessKey"]
            keys[policy] = (made["AccessKeyId"], made["SecretAccessKey"])
        return keys[policy]

    return key_of


@pytest.mark.parametrize(
    ("policy", "command"),
    [(policy, command) for policy, commands in MAY.items() for command in commands],
    ids=lambda part: part if isinstance(part, str) else "-".join(part[:2]),
)
def test_a_policy_is_enough_for_its_commands(
    cycled: Deployed, person: Person, policy: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    done = run(cycled, person, policy, command, tmp_path)
    # 3: done, and something needs a person: the database that cannot shrink.
    assert done.returncode in (0, 3), output_of(done)
    assert "denied" not in (done.stdout + done.stderr).lower(), output_of(done)


@refusing
@pytest.mark.parametrize(
    ("policy", "command"),
    [(policy, command) for policy, commands in MAY_NOT.items() for command in commands],
    ids=lambda part: part if isinstance(part, str) else "-".join(part[:2]),
)
def test_a_policy_is_not_enough_for_more(
    cycled: Deployed, person: Person, policy: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    done = run(cycled, person, policy, command, tmp_path)
    assert done.returncode != 0, output_of(done)
    assert "error" in done.stderr, output_of(done)


@refusing
def test_doctor_says_what_a_viewer_may_not_ask(cycled: Deployed, person: Person) -> None:
    done = cycled.offhours.run("doctor", key=person("viewer"))
    assert done.returncode == 3, output_of(done)
    assert "not authorized" in done.stdout, output_of(done)
    assert "Error {" not in done.stdout, output_of(done)


def test_doctor_says_when_the_alerts_reach_nobody(cycled: Deployed, person: Person) -> None:
    sns = cycled.stack.emulator.client("sns")
    topic = cycled.stack.outputs()["AlertsTopic"]
    viewer = person("viewer")

    def alerts() -> dict[str, str]:
        done = cycled.offhours.run("doctor", "-o", "json", key=viewer)
        (found,) = (one for one in json.loads(done.stdout) if one["check"] == "alerts")
        return found

    # Emulators confirm addresses by themselves.
    assert alerts()["level"] == "ok", alerts()
    listed = sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    for one in listed:
        sns.unsubscribe(SubscriptionArn=one["SubscriptionArn"])
    try:
        assert alerts()["level"] == "warning", alerts()
        assert f"aws sns subscribe --topic-arn {topic}" in alerts()["remedy"], alerts()
    finally:
        for one in listed:
            sns.subscribe(TopicArn=topic, Protocol=one["Protocol"], Endpoint=one["Endpoint"])


def test_status_for_programs_lists_the_stack(cycled: Deployed) -> None:
    done = cycled.offhours.run("status", "-o", "json")
    names = {row["name"] for row in json.loads(done.stdout)}
    assert {"web-1", "orders", "workers", "ci-1", "legacy"} <= names


def test_an_apply_asks_the_functions_where_its_stops_would_lead(
    cycled: Deployed, person: Person, tmp_path: Path
) -> None:
    path = tmp_path / "offhours.toml"
    example = (EXAMPLE / "offhours.toml").read_text()
    path.write_text(f'{example}methods = {{ droplet = "resize" }}\n')
    command = ("apply", "--dry-run", "--config", str(path))
    done = cycled.offhours.run(*command, key=person("admin"))
    assert done.returncode == 0, output_of(done)
    says = "schedule minutes: only switched off, and stays on s-2vcpu-4gb: its disk of 80 GB"
    assert f"web-1 (do-main/droplet/3164444), {says}" in " ".join(done.stdout.split()), output_of(
        done
    )


def run(
    deployed: Deployed, person: Person, policy: str, command: tuple[str, ...], directory: Path
) -> subprocess.CompletedProcess[str]:
    """Runs a command as a person; an apply always differs from what is in force."""
    if command[0] == "apply":
        path = directory / "offhours.toml"
        changed = f"max_stops = {50 + POLICIES.index(policy)}\n"
        path.write_text(changed + (EXAMPLE / "offhours.toml").read_text())
        command = (*command, "--config", str(path))
    if command[0] == "backup":
        command = (*command, str(directory / "copy"))
    return deployed.offhours.run(*command, key=person(policy))


def output_of(done: subprocess.CompletedProcess[str]) -> str:
    """Formats what a command printed, for the report of a failure."""
    return f"{done.returncode}\n{done.stdout}\n{done.stderr}"
