"""`make bench`: measures the functions as shipped, beside their floors and Python peers."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rehearsal.processes import in_a_directory
from rehearsal.simulator import simulated

from . import report, services
from .figures import DISPATCH, MEASURES, SUBJECTS, Result, median, percentile, targets
from .kept import ROOT, commit, keep, machine, progress
from .runtime import FunctionFailed, Life, Subject, live

PEER_FOLDER = ROOT / "tests" / "bench" / "peers"
MODULES = {"boto3": "plain", "boto3, asking": "observer", "powertools": "powertools"}
PACKED = {"powertools": ("aws_lambda_powertools", "jmespath", "typing_extensions.py")}
"""What a peer's archive needs besides its code; boto3 comes with Lambda's runtime."""
DROPLET = "do-main/droplet/1"
ANSWERS = {"poll-status": "status", "stop": "would-ask", "start": "already-there"}
"""What each function reports of that Droplet if it has reached the cloud."""
FLEET = 1000
"""The number of records for a tick in which nothing is due."""
LARGE = 10_000
"""The number of records for a tick in which all are due."""
ZONE = "Europe/Berlin"
EVALUATIONS = 20_000


@dataclass(frozen=True)
class Places:
    """The folders of the measured programs, and the endpoints they reach."""

    functions: Path
    programs: Path
    endpoint: str
    clouds: str
    accepting: str
    trusting: Mapping[str, str]

    def environment(self, prefix: str, endpoint: str | None = None) -> dict[str, str]:
        """Returns the settings of our functions, which the peers read as well."""
        return {
            **self.trusting,
            "RUST_LOG": "info",
            "AWS_ENDPOINT_URL": endpoint or self.endpoint,
            "AWS_ENDPOINT_URL_LAMBDA": self.accepting,
            "OFFHOURS_TABLE_PREFIX": prefix,
            "OFFHOURS_STOP_FUNCTION": "offhours-stop",
            "OFFHOURS_START_FUNCTION": "offhours-start",
            "OFFHOURS_EVENT_BUS": "none",
            "OFFHOURS_DIGITALOCEAN_URL": self.clouds,
            "OFFHOURS_HETZNER_URL": self.clouds,
            "OFFHOURS_BENCH_TOKEN": services.TOKEN,
            "OFFHOURS_LOCAL_TOKENS": "1",
        }


def main() -> int:
    return in_a_directory("bench", partial(_bench, _arguments()), FunctionFailed)


def _bench(arguments: argparse.Namespace, directory: Path) -> int:
    result = _measure(arguments, directory)
    keep(result, "tls" if arguments.tls else "result")
    parts = [report.functions(result), report.ratios(result)]
    if not arguments.tls:
        parts += [report.evaluators(result), report.targets(targets(result))]
    print("\n\n".join(parts))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--functions", type=Path, required=True, help="folder of cargo-lambda's")
    parser.add_argument("--programs", type=Path, required=True, help="folder of our programs")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--warm", type=int, default=200, help="warm invocations in each round")
    parser.add_argument("--seed", type=int, default=1, help="of the order within each round")
    parser.add_argument("--tls", action="store_true", help="reach DynamoDB over TLS")
    parser.add_argument("--command", required=True, help="what was typed")
    return parser.parse_args()


def _measure(arguments: argparse.Namespace, directory: Path) -> Result:
    with _places(arguments, directory) as (places, plain):
        subjects = [_subject(places, name) for name in SUBJECTS]
        result = {
            "machine": machine(),
            "commit": commit(),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "command": arguments.command,
            "rounds": arguments.rounds,
            "warm": arguments.warm,
            "seed": arguments.seed,
            "subjects": _rounds(arguments, subjects, places),
        }
        if not arguments.tls:
            result["idle"] = {"requests": _idle_requests(places, plain)}
            result["large"] = _large(places)
            result["evaluators"] = _evaluators(arguments)
        return result


@contextlib.contextmanager
def _places(arguments: argparse.Namespace, directory: Path) -> Iterator[tuple[Places, str]]:
    """Starts everything that the functions reach, with filled tables. Yields the places and the
    engine's own address."""
    fleet = directory / "fleet.toml"
    fleet.write_text(services.FLEET)
    simulator = arguments.programs / "cloud-simulator"
    with (
        services.engine(arguments.programs, directory) as engine,
        simulated(simulator, fleet, directory) as clouds,
        services.accepting_functions() as accepting,
        contextlib.ExitStack() as stack,
    ):
        endpoint, trusting = engine, {}
        if arguments.tls:
            endpoint, trusting = stack.enter_context(services.over_tls(engine, directory))
        for prefix, records, kind in (
            ("small-", 1, "idle"),
            ("idle-", FLEET, "idle"),
            ("due-", LARGE, "due"),
        ):
            progress(f"Writing {records:,} records ({kind}) ...")
            services.seed(arguments.programs, engine, prefix, records, kind)
        functions, programs = arguments.functions, arguments.programs
        yield Places(functions, programs, endpoint, clouds.url, accepting, trusting), engine


def _subject(places: Places, name: str, prefix: str = "idle-", endpoint: str = "") -> Subject:
    settings = places.environment(prefix, endpoint or None)
    event = _event(name)
    if name not in MODULES:
        program = places.functions / name / "bootstrap"
        return Subject(name, (str(program.resolve()),), settings, event)
    command = (sys.executable, "-m", "awslambdaric", f"{MODULES[name]}.handler")
    settings["PYTHONPATH"] = str(PEER_FOLDER)
    return Subject(name, command, settings, event)


def _event(name: str) -> bytes:
    """Returns the event for a function: it changes nothing and can be repeated."""
    if name in ("poll-status", "boto3, asking"):
        return json.dumps({"resources": [DROPLET]}).encode()
    if name in ("stop", "start"):
        command = {"resources": [DROPLET], "by": "make bench", "dry_run": True}
        return json.dumps(command).encode()
    return (ROOT / "crates" / "dispatch" / "events" / "timer.json").read_bytes()


def _rounds(arguments: argparse.Namespace, subjects: list[Subject], places: Places) -> Result:
    """Runs each subject once per round, after one uncounted run of each."""
    found = {
        subject.name: {"zip_bytes": _zipped(places, subject.name), "samples": _no_samples()}
        for subject in subjects
    }
    for subject in subjects:
        _check(subject.name, live(subject, 1).answer)
    order = random.Random(arguments.seed)
    began = time.monotonic()
    for done in range(arguments.rounds):
        for subject in order.sample(subjects, len(subjects)):
            _add(found[subject.name]["samples"], live(subject, arguments.warm))
        took = time.monotonic() - began
        progress(f"Round {done + 1} of {arguments.rounds} ({took:.0f} s)")
    return found


def _check(name: str, answer: bytes) -> None:
    """Fails if a function measured how it refuses, and not its work."""
    if name in ANSWERS:
        [outcome] = json.loads(answer)["outcomes"]
        if outcome["event"] != ANSWERS[name]:
            raise FunctionFailed(f"{name} did not reach the cloud: {outcome}")


def _no_samples() -> dict[str, list[float]]:
    return {measure: [] for measure in MEASURES}


def _add(samples: dict[str, list[float]], life: Life) -> None:
    measured = {
        "start_up_ms": life.start_up_ms,
        "first_ms": life.first_ms,
        "warm_p50_ms": median(life.warm_ms),
        "warm_p99_ms": percentile(life.warm_ms, 99),
        "cold_cpu_ms": life.cold_cpu_ms,
        "cpu_ms": life.cpu_ms,
        "memory_mib": life.memory_mib,
    }
    for measure, value in measured.items():
        samples[measure].append(round(value, 4))


def _zipped(places: Places, name: str) -> int:
    """Returns the size of a function's archive, packed as the SAM CLI packs it."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        if name in MODULES:
            # The Powertools peer imports the plain one.
            for module in {"plain", MODULES[name]} if name in PACKED else {MODULES[name]}:
                packed.write(PEER_FOLDER / f"{module}.py", f"{module}.py")
            for package in PACKED.get(name, ()):
                _pack(packed, package)
        else:
            packed.write(places.functions / name / "bootstrap", "bootstrap")
    return len(archive.getvalue())


def _pack(archive: zipfile.ZipFile, package: str) -> None:
    folder = Path(sysconfig.get_path("purelib"))
    files = [folder / package] if package.endswith(".py") else (folder / package).rglob("*.py")
    for path in sorted(files):
        archive.write(path, str(path.relative_to(folder)))


def _idle_requests(places: Places, engine: str) -> dict[str, int]:
    """Counts the DynamoDB requests of a warm tick in which nothing is due, by fleet size."""
    found = {}
    for prefix, records in (("small-", 1), ("idle-", FLEET)):
        progress(f"Counting the requests of an idle tick over {records:,} records ...")
        with services.counted(engine) as counting:
            subject = _subject(places, DISPATCH, prefix, counting.url)
            live(subject, 0)
            once = counting.requests().total()
            live(subject, 1)
            found[str(records)] = counting.requests().total() - 2 * once
    return found


def _large(places: Places) -> Result:
    """Runs a process of dispatch over records that are all due, five times."""
    found: Result = {"records": LARGE, "first_ms": [], "cpu_ms": [], "memory_mib": []}
    for turn in range(5):
        progress(f"Dispatch over {LARGE:,} due records, {turn + 1} of 5 ...")
        life = live(_subject(places, DISPATCH, "due-"), 0)
        handed_out = len(json.loads(life.answer)["starts"])
        if handed_out != LARGE:
            raise FunctionFailed(f"dispatch handed out {handed_out} of {LARGE}")
        for measure in ("first_ms", "cpu_ms", "memory_mib"):
            found[measure].append(round(getattr(life, measure), 4))
    return found


def _evaluators(arguments: argparse.Namespace) -> Result:
    """Times our evaluator and Instance Scheduler's on one schedule, in turn."""
    commands = {
        "ours": [str((arguments.functions / "evaluations" / "bootstrap").resolve())],
        "Instance Scheduler, ported": [sys.executable, str(PEER_FOLDER / "instance_scheduler.py")],
    }
    nanoseconds: dict[str, list[float]] = {name: [] for name in commands}
    answers = set()
    for done in range(arguments.rounds):
        for name, command in commands.items():
            asked = [*command, ZONE, str(EVALUATIONS)]
            printed = json.loads(subprocess.run(asked, check=True, stdout=subprocess.PIPE).stdout)
            nanoseconds[name].append(printed["nanoseconds"])
            answers.add(printed["running"])
        progress(f"Evaluations, round {done + 1} of {arguments.rounds}")
    if len(answers) != 1:
        raise FunctionFailed(f"the evaluators differ: {sorted(answers)}")
    return {"zone": ZONE, "count": EVALUATIONS, "nanoseconds": nanoseconds}


if __name__ == "__main__":
    sys.exit(main())
