"""`make stack`: deploys the template and watches it while real minutes pass.

Nothing is invoked manually before the verdict: EventBridge's timers do the work.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from . import containers, native, verdict
from .command import Offhours
from .containers import Places
from .emulator import Emulator, ministack
from .examples import store_tokens
from .processes import in_a_directory
from .simulator import Simulator, simulated
from .stack import FUNCTIONS, Failed, Stack, deploy, parameters

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "rehearsal"
EMULATORS = ("ministack", "localstack", "localstack-docker")
FOLLOWED = 5
"""Resources of the example fleet that follow its schedule."""
PATIENCE = 15 * 60.0
"""Seconds to wait before reporting that something is missing: two cycles of the schedule."""
LOOK = 3.0
"""Seconds between two reads of the functions' logs."""


def main() -> int:
    rehearse = partial(_rehearse, _arguments())
    return in_a_directory("stack", rehearse, Failed, verdict.Untraced)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make stack", description=__doc__)
    parser.add_argument("--template", type=Path, default=ROOT / "infra" / "template.yaml")
    parser.add_argument("--programs", type=Path, required=True, help="folder of our programs")
    parser.add_argument("--sam", type=Path, required=True, help="the SAM CLI")
    parser.add_argument("--emulator", choices=EMULATORS, default="ministack")
    parser.add_argument("--ministack", type=Path, required=True, help="the program of ministack")
    parser.add_argument("--localstack", type=Path, required=True, help="the Python of LocalStack")
    parser.add_argument("--stack", default="offhours", help="the stack's name")
    parser.add_argument("--keep", action="store_true", help="stay up after the verdict")
    return parser.parse_args()


def _rehearse(arguments: argparse.Namespace, directory: Path) -> int:
    with _places(arguments, directory) as places:
        emulator, simulator = places.emulator, places.simulator
        stack = _deploy(arguments, emulator, places.clouds)
        offhours = Offhours(arguments.programs / "offhours", emulator, arguments.stack)
        began = time.time()
        _apply(emulator, offhours)
        passed = _watch(stack, simulator, began)
        _print_verdict(stack, simulator, began, passed)
        for command in ("status", "history"):
            print(f"\n$ offhours {command}")
            print(offhours.run(command).stdout.rstrip())
        if arguments.keep:
            _keep(emulator, arguments.stack)
        return 0 if passed else 1


@contextlib.contextmanager
def _places(arguments: argparse.Namespace, directory: Path) -> Iterator[Places]:
    """Runs AWS and the clouds on this machine until the block ends."""
    if arguments.emulator == "localstack-docker":
        say("Starting LocalStack and the simulator of both clouds in containers.")
        with containers.localstack(arguments.programs) as places:
            yield places
        return
    with _emulator(arguments, directory) as emulator:
        say("Starting the simulator of both clouds.")
        program = arguments.programs / "cloud-simulator"
        with simulated(program, EXAMPLE / "fleet.toml", directory) as simulator:
            yield Places(emulator, simulator, simulator.url)


@contextlib.contextmanager
def _emulator(arguments: argparse.Namespace, directory: Path) -> Iterator[Emulator]:
    """Runs AWS on this machine without Docker until the block ends."""
    if arguments.emulator == "localstack":
        say("Starting LocalStack, its functions as processes, its tables on dynoxide.")
        engine = arguments.programs / "examples" / "engine"
        with native.localstack(arguments.localstack, engine, directory) as emulator:
            yield emulator
        return
    say("Starting ministack, the AWS emulator, with its roles enforced.")
    with ministack(arguments.ministack, directory) as emulator:
        yield emulator


def _deploy(arguments: argparse.Namespace, emulator: Emulator, clouds: str) -> Stack:
    say(f"Deploying {arguments.template.relative_to(ROOT)} as the stack {arguments.stack}.")
    began = time.monotonic()
    stack = deploy(emulator, arguments.sam, arguments.template, arguments.stack, parameters(clouds))
    say(f"It stands after {time.monotonic() - began:.0f} s:")
    for short in ("dispatch", "poll-status"):
        rule, schedule = stack.rule_of(short)
        say(f"    {rule}, {schedule} -> {stack.function(short)}")
    return stack


def _apply(emulator: Emulator, offhours: Offhours) -> None:
    say("Storing the accounts' tokens under /offhours and applying the configuration.")
    store_tokens(emulator)
    configuration = EXAMPLE / "offhours.toml"
    done = offhours.run("apply", "--config", str(configuration), "--yes")
    if done.returncode:
        raise Failed(done.stderr.strip())
    print(done.stdout.rstrip())


def _watch(stack: Stack, simulator: Simulator, began: float) -> bool:
    """Prints what the functions log until all has been stopped and started, or time is up."""
    say("Now EventBridge's minutes do the rest; everything stops and starts within ten of them.")
    printed: set[tuple[float, str, str]] = set()
    while time.time() < began + PATIENCE:
        for line in _new_lines(stack, began, printed):
            clock = time.strftime("%H:%M:%SZ", time.gmtime(line.at))
            print(f"{clock}  {line.function:11}  {line.message}", flush=True)
        if len(verdict.completed_cycles(verdict.changes(stack, simulator, began))) == FOLLOWED:
            return True
        time.sleep(LOOK)
    return False


def _new_lines(stack: Stack, began: float, printed: set[tuple[float, str, str]]) -> Iterator:
    lines = [line for short in FUNCTIONS for line in stack.lines(short, began)]
    for line in sorted(lines, key=lambda line: line.at):
        identity = (line.at, line.function, str(line.fields))
        if identity not in printed and line.message:
            printed.add(identity)
            yield line


def _print_verdict(stack: Stack, simulator: Simulator, began: float, passed: bool) -> None:
    found = verdict.changes(stack, simulator, began)
    print()
    if passed:
        say(f"All {FOLLOWED} resources were stopped and started by EventBridge's own minutes:")
    else:
        completed = len(verdict.completed_cycles(found))
        say(f"Only {completed} of {FOLLOWED} resources were stopped and started; this was seen:")
    for change in found:
        print(f"  {change.in_a_line()}")


def _keep(emulator: Emulator, stack: str) -> None:
    say("The stack stays up until Ctrl-C. To talk to it from another terminal:")
    names = (
        "AWS_ENDPOINT_URL",
        "AWS_REGION",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
    )
    environment = emulator.environment()
    for name in names:
        print(f"  export {name}={environment[name]}")
    print(f"  export OFFHOURS_TABLE_PREFIX={stack}-", flush=True)
    while True:
        time.sleep(60)


def say(words: str) -> None:
    """Prints a step and flushes, since long work follows."""
    print(words, flush=True)


if __name__ == "__main__":
    sys.exit(main())
