"""`make soak`: runs the deployed stack under faults, people and new configurations, in real time.

The whole run is planned from a seed before it begins. The evidence is the simulator's log and every
version of every item in the tables. Invariants are checked during the run, and the state of every
resource at its end. The last quarter of the run is calm: at least 6 and at most 15 minutes.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

from rehearsal.command import Offhours
from rehearsal.emulator import Emulator, ministack
from rehearsal.examples import store_tokens
from rehearsal.processes import in_a_directory
from rehearsal.simulator import simulated
from rehearsal.stack import Failed, Stack, deploy, parameters

from . import fleet
from .checks import CHECKS, FINAL, Violation, run
from .collect import Collector
from .evidence import Evidence
from .kinds import CREATIONS, DELETIONS, kind_of
from .plan import Act, Planner, calm_minutes
from .play import Player

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "target" / "soak"
"""The folder in which the evidence of each seed is kept."""
LOOK = 10.0
"""Seconds between two reads of the log and the tables."""
SHORTEST = 12
"""The shortest run, in minutes."""


def main() -> int:
    return in_a_directory("soak", partial(_soak, _arguments()), Failed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--template", type=Path, default=ROOT / "infra" / "template.yaml")
    parser.add_argument("--programs", type=Path, required=True, help="folder of our programs")
    parser.add_argument("--sam", type=Path, required=True, help="the SAM CLI")
    parser.add_argument("--ministack", type=Path, required=True, help="the program of ministack")
    parser.add_argument("--minutes", type=_minutes, default=60, help="how long it takes")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    return parser.parse_args()


def _minutes(text: str) -> int:
    minutes = int(text)
    if minutes < SHORTEST:
        raise argparse.ArgumentTypeError(f"{SHORTEST} minutes at least, {minutes} given")
    return minutes


def _soak(arguments: argparse.Namespace, directory: Path) -> int:
    calm = calm_minutes(arguments.minutes)
    say(f"Seed {arguments.seed}: {arguments.minutes} minutes, the last {calm} of them calm.")
    described = directory / "fleet.toml"
    described.write_text(fleet.toml())
    say("Starting ministack, the AWS emulator, and the simulator of both clouds.")
    with (
        ministack(arguments.ministack, directory) as emulator,
        simulated(arguments.programs / "cloud-simulator", described, directory) as simulator,
    ):
        say("Deploying the template, and storing the accounts' tokens.")
        given = parameters(simulator.url)
        stack = deploy(emulator, arguments.sam, arguments.template, "offhours", given)
        store_tokens(emulator, fleet.TOKENS)
        collector = Collector(stack, simulator, tuple(fleet.TOKENS.values()))
        offhours = Offhours(arguments.programs / "offhours", emulator, stack.name)
        player = Player(simulator, offhours, directory, collector.act)
        try:
            return Run(arguments, collector, player, emulator, stack).play()
        finally:
            # Also for a run that is cut short.
            collector.keep(KEPT / str(arguments.seed))


class Run:
    """One run, from its first minute to its verdict."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        collector: Collector,
        player: Player,
        emulator: Emulator,
        stack: Stack,
    ) -> None:
        self._minutes = arguments.minutes
        self._seed = arguments.seed
        self._collector = collector
        self._player = player
        self._emulator = emulator
        self._stack = stack
        self._violations: dict[tuple[str, str, str], Violation] = {}
        self._performed: Counter[str] = Counter()
        self._begin = 0.0

    def play(self) -> int:
        """Performs the plan, checks the evidence, and prints the verdict. Returns the exit code."""
        # Edges are at whole minutes.
        self._begin = (time.time() // 60 + 1) * 60
        plan = Planner(self._seed, self._minutes, self._begin).plan()
        say(f"{len(plan)} acts are laid out for {len(fleet.MEMBERS)} resources.")
        time.sleep(max(0.0, self._begin - time.time()))
        looked, minute = 0.0, -1
        while (passed := time.time() - self._begin) < self._minutes * 60:
            while plan and plan[0].at <= passed:
                self._perform(plan.pop(0))
            self._player.expire()
            if time.monotonic() - looked >= LOOK:
                looked = time.monotonic()
                evidence = self._collector.collect()
                self._check(CHECKS, evidence)
                if int(passed // 60) > minute:
                    minute = int(passed // 60)
                    say(self._line(minute, evidence))
            time.sleep(0.5)
        return self._verdict()

    def _perform(self, act: Act) -> None:
        became = self._player.perform(act)
        self._performed[act.who] += 1
        self._note(act.who, act.words if became is None else f"{act.words}: {became}")

    def _check(self, checks: tuple, evidence: Evidence) -> None:
        for violation in run(checks, evidence):
            identity = (violation.check, violation.subject, violation.words)
            if identity not in self._violations:
                self._violations[identity] = violation
                self._note("VIOLATION", str(violation))

    def _note(self, who: str, words: str) -> None:
        say(f"{_clock(time.time())}  {who:9}  {words}")

    def _line(self, minute: int, evidence: Evidence) -> str:
        latest = [versions[-1] for versions in evidence.records.values()]
        phases = Counter(one.get("phase", "name") for one in latest if one.item)
        moving = sorted(
            f"{one.get('name')} {one.direction}"
            for one in latest
            if one.get("phase", "name") == "in-flight"
        )
        changes = sum(1 for _ in evidence.changes())
        parts = [
            f"minute {minute:2} of {self._minutes}",
            f"{len(evidence.entries)} requests, {changes} of them changes",
            ", ".join(f"{phases[name]} {name}" for name in sorted(phases) if name != "in-flight"),
            f"{len(moving)} in flight" + (f": {', '.join(moving)}" if moving else ""),
            f"{len(self._violations)} violations",
        ]
        return f"{_clock(time.time())}  " + " · ".join(part for part in parts if part)

    def _verdict(self) -> int:
        evidence = self._collector.collect(last=True)
        self._check(CHECKS, evidence)
        self._check(FINAL, evidence)
        failed = self._dead_letters()
        if failed:
            self._note("VIOLATION", f"{failed} invocations of functions failed")
        wrong = len(self._violations) + bool(failed)
        acts = ", ".join(f"{count} by {who}" for who, count in sorted(self._performed.items()))
        changes = sum(1 for _ in evidence.accepted())
        history = sum(len(items) for items in evidence.history.values())
        versions = sum(len(found) for found in evidence.versions.values())
        faulty = sum(1 for entry in evidence.entries if entry.faulty)
        say("")
        verbs = Counter(kind_of(one.resource).verb(one) for one in evidence.accepted())
        deleted, made = (
            sum(verbs[verb] for verb in verbs_of) for verbs_of in (DELETIONS, CREATIONS)
        )
        say(f"Performed: {acts}. {changes} changes were accepted; {history} transitions ended.")
        say(f"Machines were hibernated {deleted} times, and recreated {made} times.")
        kept = f"{KEPT.relative_to(ROOT)}/{self._seed}"
        say(f"Checked {len(evidence.entries)} requests, {faulty} of them at a fault,")
        say(f"and {versions} versions of items; all of it is kept in {kept}.")
        say(f"Seed {self._seed}: {wrong} violations." if wrong else f"Seed {self._seed}: all held.")
        for violation in self._violations.values():
            say(f"  {_clock(violation.at)}  {violation}")
        return 1 if wrong else 0

    def _dead_letters(self) -> int:
        sqs = self._emulator.client("sqs")
        url = sqs.get_queue_url(QueueName=f"{self._stack.name}-dead-letters")["QueueUrl"]
        wanted = ["ApproximateNumberOfMessages"]
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=wanted)["Attributes"]
        return int(attributes["ApproximateNumberOfMessages"])


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%SZ", time.gmtime(at))


def say(words: str) -> None:
    """Prints a line and flushes."""
    print(words, flush=True)


if __name__ == "__main__":
    sys.exit(main())
