"""Shared by the tests of a deployed stack: one emulator, one packaged template, one stack."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from emulators import LOCALSTACK
from fleets import FOLLOWED, STUBBORN
from inbox import Inbox
from machines import Host, host
from places import EXAMPLE, PACKAGES, TEMPLATE
from rehearsal import native, verdict
from rehearsal.command import Offhours
from rehearsal.emulator import Emulator, ministack
from rehearsal.examples import store_tokens
from rehearsal.processes import end_on_termination
from rehearsal.simulator import Simulator, simulated
from rehearsal.stack import CHECKOUT, Stack, deploy, for_sam, parameters, run
from walks import Walks


def pytest_configure() -> None:
    """Makes background programs end with us, however we end."""
    end_on_termination()


def _setting(name: str) -> Path:
    value = os.environ.get(name)
    if not value:
        runs = "`make test-stack` or `make test-localstack`"
        pytest.exit(f"{name} is not set: run the tests with {runs}", returncode=2)
    return Path(value)


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of our own programs."""
    return _setting("OFFHOURS_PROGRAMS")


@pytest.fixture(scope="session")
def sam() -> Path:
    """The stock SAM CLI."""
    return _setting("OFFHOURS_SAM")


@pytest.fixture(scope="session")
def emulator(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """One emulator for all tests: ministack with its roles enforced, or LocalStack."""
    directory = tmp_path_factory.mktemp("emulator")
    if LOCALSTACK:
        engine = programs / "examples" / "engine"
        with native.localstack(LOCALSTACK, engine, directory) as emulator:
            yield emulator
        return
    with ministack(_setting("OFFHOURS_MINISTACK"), directory) as emulator:
        yield emulator


@pytest.fixture(scope="session")
def packaged(emulator: Emulator, sam: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template with its code uploaded, as the SAM CLI gives it to CloudFormation."""
    emulator.client("s3").create_bucket(
        Bucket=PACKAGES,
        CreateBucketConfiguration={"LocationConstraint": "eu-central-1"},
    )
    packaged = tmp_path_factory.mktemp("package") / "packaged.yaml"
    command = [str(sam), "package", "--template-file", str(TEMPLATE)]
    command += ["--s3-bucket", PACKAGES, "--output-template-file", str(packaged)]
    run(command, for_sam(emulator))
    return packaged


@pytest.fixture(scope="session")
def tokens(emulator: Emulator) -> None:
    """The accounts' tokens, under the path that stacks may read."""
    store_tokens(emulator)


WALKS_AT_ONCE = 3
"""The number of stacks that are walked concurrently: most of a walk is waiting."""


@pytest.fixture(scope="session")
def walks(
    emulator: Emulator, packaged: Path, programs: Path, tokens: None, tmp_path_factory: Any
) -> Iterator[dict[str, Future[None]]]:
    """The running walks of every path under each copy of the template."""
    directory = tmp_path_factory.mktemp("walks")
    with ThreadPoolExecutor(WALKS_AT_ONCE) as pool:
        yield Walks(emulator, packaged, programs, directory).begin(pool)


@pytest.fixture(scope="session")
def verifying(emulator: Emulator, sam: Path) -> Iterator[subprocess.Popen[str]]:
    """The script that tries the stack on AWS, as far as an emulator goes."""
    python = sam.parent / Path(sys.executable).name
    command = [str(python), str(CHECKOUT / "infra" / "verify.py")]
    command += ["--yes", "--wait", "0.05", "--stack", "offhours-try", "--region", "eu-central-1"]
    with subprocess.Popen(
        command,
        env=for_sam(emulator),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as script:
        yield script


@dataclass(frozen=True)
class Deployed:
    """The stack that the SAM CLI deployed with its timers on, and what watches it."""

    stack: Stack
    simulator: Simulator
    offhours: Offhours
    bus: Inbox
    mails: Inbox
    began: float
    """When the configuration was applied: from then on only timers invoke anything."""
    host: Host | None
    """The SSH server, if this machine has one."""


@pytest.fixture(scope="session")
def deployed(
    emulator: Emulator, sam: Path, programs: Path, tokens: None, tmp_path_factory: Any
) -> Iterator[Deployed]:
    """The stack of `make stack`, with a database that its provider refuses to shrink and a machine
    over SSH."""
    directory = tmp_path_factory.mktemp("deployed")
    fleet = directory / "fleet.toml"
    fleet.write_text((EXAMPLE / "fleet.toml").read_text() + STUBBORN)
    with (
        simulated(programs / "cloud-simulator", fleet, directory) as simulator,
        host(programs / "ssh-host", emulator) as lab,
    ):
        given = parameters(simulator.url, AlertEmail="oncall@example.com")
        stack = deploy(emulator, sam, TEMPLATE, "offhours", given)
        bus = Inbox.on_bus(emulator, stack.name)
        mails = Inbox.on_topic(emulator, stack.outputs()["AlertsTopic"])
        offhours = Offhours(programs / "offhours", emulator, stack.name)
        configuration = directory / "offhours.toml"
        account = lab.account() if lab else ""
        configuration.write_text((EXAMPLE / "offhours.toml").read_text() + account)
        began = time.time()
        applied = offhours.run("apply", "--config", str(configuration), "--yes")
        assert applied.returncode == 0, applied.stderr
        assert lab is None or "The key of lab works: 1 machine" in applied.stdout, applied.stdout
        yield Deployed(stack, simulator, offhours, bus, mails, began, lab)


@pytest.fixture(scope="session")
def cycled(deployed: Deployed, request: pytest.FixtureRequest) -> Deployed:
    """The deployed stack after EventBridge's minutes have stopped and started everything."""
    # These run while this waits.
    request.getfixturevalue("verifying")
    if not LOCALSTACK:
        request.getfixturevalue("walks")
    until = time.time() + 15 * 60
    while True:
        changes = verdict.changes(deployed.stack, deployed.simulator, deployed.began)
        completed = verdict.completed_cycles(changes)
        if completed == FOLLOWED:
            return deployed
        assert time.time() < until, f"only {sorted(completed)} were stopped and started: {changes}"
        time.sleep(2)
