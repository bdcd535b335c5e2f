"""Walks under copies of the template, each without one statement of one role."""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import roles
from fleets import QUICK
from paths import Walker
from places import PACKAGES, TEMPLATE
from rehearsal.command import Offhours
from rehearsal.emulator import Emulator
from rehearsal.simulator import simulated
from rehearsal.stack import Stack, parameters

ENFORCED = [
    statement
    for statement in roles.statements(roles.read(TEMPLATE))
    if statement.sid not in roles.NOT_ENFORCED
]
"""The statements whose absence the emulator shows."""

WHOLE = "whole"
"""The walk under the roles as they are."""


@dataclass(frozen=True)
class Walks:
    """Deploys copies of a packaged template and walks every path of each."""

    emulator: Emulator
    packaged: Path
    programs: Path
    directory: Path

    def begin(self, pool: ThreadPoolExecutor) -> dict[str, Future[None]]:
        """Starts all walks. Returns them by the statement that is lacking."""
        lacking: list[roles.Statement | None] = [None, *ENFORCED]
        return {
            str(one or WHOLE): pool.submit(self.walk, f"walk-{number}", one)
            for number, one in enumerate(lacking)
        }

    def walk(self, name: str, lacking: roles.Statement | None) -> None:
        """Walks one copy."""
        directory = self.directory / name
        directory.mkdir()
        fleet = directory / "fleet.toml"
        fleet.write_text(QUICK)
        template = roles.read(self.packaged)
        # The bucket accepts no plain HTTP, and the emulator speaks nothing else.
        del template["Resources"]["PagesBucketPolicy"]
        if lacking is not None:
            template = roles.without(template, lacking)
        with simulated(self.programs / "cloud-simulator", fleet, directory) as simulator:
            stack = _create(self.emulator, name, template, simulator.url)
            offhours = Offhours(self.programs / "offhours", self.emulator, name)
            # Only poll-status's permission to ask for cuts needs the path that takes a minute.
            forced = lacking is None or lacking.sid == "HandOverNextSteps"
            Walker(stack, simulator, offhours, directory).walk(forced=forced)


def _create(emulator: Emulator, name: str, template: dict[str, Any], clouds: str) -> Stack:
    """Creates a stack of a packaged template, with its timers off."""
    cloudformation = emulator.client("cloudformation")
    # Too large to send inline.
    body = json.dumps(template).encode()
    emulator.client("s3").put_object(Bucket=PACKAGES, Key=f"{name}.json", Body=body)
    given = parameters(clouds, Timers="DISABLED", Pages="ENABLED")
    cloudformation.create_stack(
        StackName=name,
        TemplateURL=f"{emulator.url}/{PACKAGES}/{name}.json",
        Capabilities=[
            "CAPABILITY_IAM",
            "CAPABILITY_NAMED_IAM",
            "CAPABILITY_AUTO_EXPAND",
        ],
        Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in given.items()],
    )
    waiter = cloudformation.get_waiter("stack_create_complete")
    waiter.wait(StackName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 120})
    return Stack(emulator, name)
