"""`make sizes`: each function's archive size, and its memory for a thousand resources.

Each function is deployed by the template and runs as on Lambda, but natively on this machine. Its
memory is the most that its process ever had in RAM.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import time
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from .command import Offhours
from .emulator import Emulator, ministack
from .examples import standing, store_tokens
from .processes import in_a_directory
from .simulator import Simulator, simulated
from .stack import BUILT, FUNCTIONS, Failed, Stack, deploy, parameters, timer

ROOT = Path(__file__).resolve().parents[2]
MIB = 1024 * 1024

MOST_ZIPPED = 4_000_000
"""The largest allowed archive of a function, in bytes."""
MOST_MEMORY = 40 * MIB
"""The most memory a function may use in a tick over a thousand resources, in bytes."""

DROPLETS, SERVERS = 600, 400


def main() -> int:
    parser = argparse.ArgumentParser(prog="make sizes", description=__doc__)
    parser.add_argument("--programs", type=Path, required=True, help="folder of our programs")
    parser.add_argument("--sam", type=Path, required=True, help="the SAM CLI")
    parser.add_argument("--ministack", type=Path, required=True, help="the emulator")
    arguments = parser.parse_args()
    return in_a_directory("sizes", partial(_print, arguments), Failed)


def _print(arguments: argparse.Namespace, directory: Path) -> int:
    zipped = {short: _zipped(BUILT / short / "bootstrap") for short in FUNCTIONS}
    memory = _measure(arguments, directory)
    print(f"{'function':12} {'zip, MB':>8} {'peak memory, MiB':>17}")
    for short in FUNCTIONS:
        print(f"{short:12} {zipped[short] / 1e6:8.2f} {memory[short] / MIB:17.1f}")
    too_large = [short for short in FUNCTIONS if zipped[short] > MOST_ZIPPED]
    too_hungry = [short for short in FUNCTIONS if memory[short] > MOST_MEMORY]
    for short in too_large:
        print(f"error: the archive of {short} is larger than 4 MB", file=sys.stderr)
    for short in too_hungry:
        print(f"error: {short} needs more than 40 MiB", file=sys.stderr)
    return 1 if too_large or too_hungry else 0


def _zipped(binary: Path) -> int:
    """Returns the size of a function's archive, packed as the SAM CLI packs it."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.write(binary, "bootstrap")
    return len(archive.getvalue())


def _measure(arguments: argparse.Namespace, directory: Path) -> dict[str, int]:
    """Lets the functions work through a thousand resources. Returns their peak memory in bytes."""
    fleet = directory / "fleet.toml"
    fleet.write_text(_fleet())
    with (
        ministack(arguments.ministack, directory) as emulator,
        simulated(arguments.programs / "cloud-simulator", fleet, directory) as simulator,
    ):
        stack = _deploy(arguments, emulator, simulator)
        offhours = Offhours(arguments.programs / "offhours", emulator, stack.name)
        with _sampled(stack) as peaks:
            for desired in ("stopped", "running"):
                _apply(offhours, directory, desired)
                print(f"A thousand resources are to be {desired} ...", flush=True)
                _tick_until(stack, simulator, desired)
        return peaks


def _fleet() -> str:
    # The clouds' own limits would spread a thousand changes over many ticks.
    tables = [
        """[[accounts]]
name = "do-main"
provider = "digitalocean"
token = "simulated-do-token"
read_token = "simulated-do-reads"
rate_limit = { per_hour = 1000000, per_minute = 100000 }""",
        """[[accounts]]
name = "hz-eu"
provider = "hetzner"
token = "simulated-hz-token"
read_token = "simulated-hz-reads"
rate_limit = { per_hour = 1000000 }""",
    ]
    tables += [
        f'[[droplets]]\nid = {number}\nname = "d-{number}"\ntags = ["offhours:nights"]\n'
        'power_action = "1s"'
        for number in range(1, DROPLETS + 1)
    ]
    tables += [
        f'[[servers]]\nid = {number}\nname = "s-{number}"\nlabels = {{ offhours = "nights" }}\n'
        'shutdown = "1s"\npoweron = "1s"'
        for number in range(1, SERVERS + 1)
    ]
    return "\n\n".join(tables)


def _deploy(arguments: argparse.Namespace, emulator: Emulator, simulator: Simulator) -> Stack:
    template = ROOT / "infra" / "template.yaml"
    # The functions are invoked directly, in turn, which saves waiting for the minute timers.
    given = parameters(simulator.url, Timers="DISABLED")
    stack = deploy(emulator, arguments.sam, template, "sizes", given)
    store_tokens(emulator)
    return stack


def _apply(offhours: Offhours, directory: Path, desired: str) -> None:
    path = directory / "offhours.toml"
    path.write_text(standing(desired, "max_stops = 1000"))
    done = offhours.run("apply", "--config", str(path), "--yes")
    if done.returncode:
        raise Failed(done.stderr.strip())


def _tick_until(stack: Stack, simulator: Simulator, desired: str) -> None:
    """Ticks until everything is in the desired state."""
    ends = {"stopped": {"off"}, "running": {"active", "running"}}[desired]
    until = time.monotonic() + 600
    while {one["status"] for one in simulator.resources().values()} - ends:
        if time.monotonic() > until:
            raise Failed(f"not everything is {desired} after ten minutes")
        for short in ("poll-status", "dispatch"):
            stack.invoke(short, timer(short))
        time.sleep(5)
    _settle(stack)


def _settle(stack: Stack) -> None:
    """Ticks until nothing is in flight."""
    while stack.invoke("poll-status", timer("poll-status"))["in_flight"]:
        time.sleep(1)


@contextlib.contextmanager
def _sampled(stack: Stack) -> Iterator[dict[str, int]]:
    """Yields a dict that is filled at the block's end with each function's peak memory, as the
    kernel counts it."""
    peaks: dict[str, int] = {}
    yield peaks
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name = _function_name(process)
            if name and name.startswith(f"{stack.name}-"):
                short = name.removeprefix(f"{stack.name}-")
                peaks[short] = max(peaks.get(short, 0), _peak(process))


def _function_name(process: Path) -> str | None:
    """Returns the name of the function that a process runs, taken from its environment."""
    for setting in (process / "environ").read_bytes().split(b"\0"):
        name, _, value = setting.partition(b"=")
        if name == b"AWS_LAMBDA_FUNCTION_NAME":
            return value.decode()
    return None


def _peak(process: Path) -> int:
    for line in (process / "status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    sys.exit(main())
