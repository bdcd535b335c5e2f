"""Performs the acts of the plan when they are due."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from rehearsal.command import Offhours
from rehearsal.simulator import Refusal, Simulator

from .plan import Act, Apply, Calm, Command, Create, Fault, Hold, Person, Rehearse

COMMAND_TAKES = 60.0
"""Seconds that a command may take, since the functions that it invokes may be slow."""
REHEARSAL_TAKES = 600.0
"""Seconds that a rehearsal may take, since a fault may lie on its way."""
BETWEEN_REHEARSALS = 30.0
"""Seconds until a rehearsal that failed is tried again."""
DONE = (0, 3)
"""Exit codes of a command that succeeded; 3 means that something needs a person."""


@dataclass(frozen=True)
class Active:
    """A fault that is set until an instant."""

    until: float
    fault: Fault


class Player:
    """Performs acts against the simulator and the stack."""

    def __init__(
        self,
        simulator: Simulator,
        offhours: Offhours,
        directory: Path,
        acted: Callable[[str], None],
    ) -> None:
        self._simulator = simulator
        self._offhours = offhours
        self._configuration = directory / "offhours.toml"
        self._acted = acted
        """Records that a person did something with a resource."""
        self.rehearsals: list[threading.Thread] = []
        """Rehearsals wait for the clouds, and so run beside the rest."""
        self._calmed = threading.Event()
        self._faults: list[Active] = []
        self._holds: list[tuple[float, int, bool]] = []

    def perform(self, act: Act) -> str | None:
        """Performs an act. Returns what became of it, if that is worth reporting."""
        now, deed = time.time(), act.deed
        if isinstance(deed, Fault):
            self._faults.append(Active(now + deed.lasting, deed))
            self._simulator.misbehave(deed.match, deed.does, deed.times)
        elif isinstance(deed, Hold):
            number = self._simulator.hold(deed.hold)
            self._holds.append((now + deed.lasting, number, deed.discard))
        elif isinstance(deed, Person):
            self._acted(deed.resource)
            return self._at_the_clouds(lambda: self._simulator.person(deed.resource, deed.act))
        elif isinstance(deed, Create):
            return self._at_the_clouds(lambda: self._simulator.create(deed.toml))
        elif isinstance(deed, Command):
            return self._run(*deed.arguments)
        elif isinstance(deed, Rehearse):
            thread = threading.Thread(target=self._rehearse, args=(deed.resource,), daemon=True)
            self.rehearsals.append(thread)
            thread.start()
        elif isinstance(deed, Apply):
            self._configuration.write_text(deed.layout.toml())
            # What was only observed may act again.
            return self._run("apply", "--config", str(self._configuration), "--yes", "--loosen")
        elif isinstance(deed, Calm):
            self.calm()
        return None

    @staticmethod
    def _at_the_clouds(do: Callable[[], None]) -> str | None:
        try:
            do()
        except Refusal as refusal:
            return f"refused: {refusal}"
        return None

    def _rehearse(self, resource: str) -> None:
        """Repeats what a fault cut short: a machine that is hibernated already is only woken."""
        arguments = ("rehearse", resource, "--yes")
        while self._run(*arguments, timeout=REHEARSAL_TAKES, done=(0,)) is not None:
            if self._calmed.wait(BETWEEN_REHEARSALS):
                return

    def _run(
        self, *arguments: str, timeout: float = COMMAND_TAKES, done: tuple[int, ...] = DONE
    ) -> str | None:
        try:
            ran = self._offhours.run(*arguments, timeout=timeout)
        except subprocess.TimeoutExpired:
            return f"still at it after {timeout:.0f} s, and ended"
        if ran.returncode in done:
            return None
        said = (ran.stderr.strip() or ran.stdout.strip()).splitlines()
        errors = [line for line in said if line.startswith("error:")]
        return f"exit code {ran.returncode}: {(errors or said or [''])[0]}"

    def expire(self) -> None:
        """Ends the faults and holds whose time is over."""
        now = time.time()
        if any(active.until <= now for active in self._faults):
            # The simulator removes all faults or none, so those that remain count from the start.
            self._faults = [active for active in self._faults if active.until > now]
            self._set(self._faults)
        over = [hold for hold in self._holds if hold[0] <= now]
        self._holds = [hold for hold in self._holds if hold[0] > now]
        self._end(over)

    def calm(self) -> None:
        """Ends all faults and holds, and tries no rehearsal again."""
        self._calmed.set()
        self._faults = []
        self._set([])
        holds, self._holds = self._holds, []
        self._end(holds)

    def _set(self, faults: Iterable[Active]) -> None:
        self._simulator.behave()
        for active in faults:
            fault = active.fault
            self._simulator.misbehave(fault.match, fault.does, fault.times)

    def _end(self, holds: Iterable[tuple[float, int, bool]]) -> None:
        for _, number, discard in holds:
            self._simulator.end_hold(number, discard=discard)
