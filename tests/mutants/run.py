"""Breaks the code in one place at a time, and reports which test notices: `make mutants`.

Each entry of the `*.toml` files beside this one replaces a few words of the source with others that
remove a guard. The change is made in a copy of the checkout under `target/`, compiled there, and
tested: first by the tests that are expected to notice it, then by wider ones. A change that no test
notices is a guard that could be lost unnoticed.

All of them take an hour or two. Verdicts are kept as they are reached: a run that was interrupted
goes on where it ended if neither the sources nor the entries have changed.
"""

from __future__ import annotations

import argparse
import fcntl
import fnmatch
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from itertools import groupby
from pathlib import Path

import tomlkit

ROOT = Path(__file__).resolve().parents[2]
LISTS = Path(__file__).resolve().parent

# The name of the black-box tests, which is that of their test target.
BLACK_BOX = "offhours"

# The crates whose changes also show in the tests of those above them.
BASES = {
    "domain": ["transition", "lifecycle"],
    "transition": ["lifecycle"],
    "store": ["lifecycle"],
    "provider": ["lifecycle"],
}

KEYS = {"name", "guard", "file", "find", "replace", "caught_by", "equivalent"}

# A mutant's tests may take this many times as long as those of the untouched code, plus this many
# seconds.
SLOWER = 5
SPARE_SECONDS = 60

# What a black-box test prints if it finds no program, or one built from other sources.
PROGRAMS_MISSING = "run `cargo build --workspace --bins`"


class ListError(Exception):
    """An entry that cannot be used as written."""


@dataclass(frozen=True)
class Mutant:
    """One deliberate breakage."""

    area: str
    name: str
    guard: str
    file: str
    find: str
    replace: str
    caught_by: str
    equivalent: str | None = None

    @property
    def crate(self) -> str:
        """The folder name of the crate that is broken."""
        return Path(self.file).parts[1]

    def suites(self, narrow: bool) -> list[str]:
        """Returns the tests to run, narrowest first. None should notice an equivalent one."""
        suites = [self.caught_by, self.crate]
        if self.equivalent is None:
            suites += BASES.get(self.crate, [])
            suites += [] if narrow else [BLACK_BOX]
        return list(dict.fromkeys(suites))

    def applied_to(self, text: str) -> str:
        """Returns the source with the breakage in it."""
        found = text.count(self.find)
        if found != 1:
            times = "not there" if found == 0 else f"there {found} times"
            raise ListError(f"{self.name}: what it looks for in {self.file} is {times}")
        return text.replace(self.find, self.replace)


def mutants_in(path: Path) -> list[Mutant]:
    """Reads the entries of one file."""
    entries = tomlkit.parse(path.read_text()).unwrap().get("mutant", [])
    mutants = []
    for entry in entries:
        name = entry.get("name", "an entry without a name")
        unknown, missing = entry.keys() - KEYS, KEYS - {"equivalent"} - entry.keys()
        for problem, keys in (("unknown", unknown), ("missing", missing)):
            if keys:
                raise ListError(f"{path.name}: {name}: {problem} {', '.join(sorted(keys))}")
        mutants.append(Mutant(area=path.stem, **entry))
    return mutants


def all_mutants() -> list[Mutant]:
    """Reads the entries of all files, in the files' order."""
    mutants = [mutant for path in sorted(LISTS.glob("*.toml")) for mutant in mutants_in(path)]
    twice = [name for name, count in Counter(m.name for m in mutants).items() if count > 1]
    if twice:
        raise ListError(f"two entries have one name: {', '.join(twice)}")
    return mutants


def chosen(mutants: list[Mutant], pattern: str | None) -> list[Mutant]:
    """Returns those whose name, area or file a pattern matches, in whole or in part."""
    if pattern is None:
        return mutants
    fits = f"*{pattern}*"
    return [m for m in mutants if any(fnmatch.fnmatch(of, fits) for of in (m.name, m.area, m.file))]


# --- The copy -------------------------------------------------------------------------------------


def sources() -> list[Path]:
    """Returns the files of the checkout, including uncommitted ones."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    paths = (Path(name) for name in listed.split("\0") if name)
    return [path for path in paths if (ROOT / path).is_file()]


def copy_checkout(to: Path) -> None:
    """Makes `to` a copy of the checkout. Unchanged files are not rewritten, nor recompiled."""
    kept = set()
    for path in sources():
        source, copy = ROOT / path, to / path
        kept.add(copy)
        content = source.read_bytes()
        if not copy.is_file() or copy.read_bytes() != content:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
        copy.chmod(source.stat().st_mode & 0o777)
    for copy in [path for path in to.rglob("*") if path.is_file() and path not in kept]:
        copy.unlink()


@contextmanager
def broken(mutant: Mutant, checkout: Path) -> Iterator[None]:
    """Puts a breakage into the copy until the block ends."""
    path = checkout / mutant.file
    whole = path.read_text()
    path.write_text(mutant.applied_to(whole))
    try:
        yield
    finally:
        path.write_text(whole)


# --- The tests ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ran:
    """How a run of tests ended."""

    passed: bool
    # The tests that failed, in order; empty if the run ended in another way.
    failed: tuple[str, ...] = ()
    timed_out: bool = False
    # The compiler's first error, if there was one.
    error: str | None = None
    # The tests that ran, and for how many seconds.
    tests: tuple[str, ...] = ()
    seconds: float = 0.0


def of_output(output: str, status: int) -> Ran:
    """Parses what a test program printed."""
    failed = re.findall(r"^test (\S+)(?: - should panic)? \.\.\. FAILED$", output, re.MULTILINE)
    # If a test prints, its name and its result are on different lines.
    listed = re.findall(r"^    (\S+)$", output.rpartition("\nfailures:\n")[2], re.MULTILINE)
    names = dict.fromkeys(sorted({*failed, *(listed if "\nfailures:\n" in output else [])}))
    tests = re.findall(r"^test (\S+)(?: - should panic)? \.\.\. ", output, re.MULTILINE)
    seconds = re.findall(r"^test result: .* finished in ([\d.]+)s$", output, re.MULTILINE)
    has_begun = re.search(r"^running \d+ tests?$", output, re.MULTILINE)
    return Ran(
        passed=status == 0,
        failed=tuple(names),
        error=first_error(output) if status != 0 and not has_begun else None,
        tests=tuple(tests),
        seconds=sum(map(float, seconds)),
    )


def first_error(output: str) -> str:
    """Returns the compiler's first error, as one line."""
    lines = [line for line in output.splitlines() if re.search(r"\berror(\[E\d+\])?:", line)]
    return lines[0].strip() if lines else "cargo failed"


class Runner:
    """Builds and runs the tests of the copy."""

    def __init__(self, checkout: Path, target: Path, logs: Path):
        self.checkout = checkout
        self.logs = logs
        self.environment = os.environ | {
            "CARGO_TARGET_DIR": str(target),
            "CARGO_TERM_COLOR": "never",
            # The black-box tests run the clouds' official clients with this.
            "OFFHOURS_PYTHON": sys.executable,
        }
        # How many seconds the tests of the untouched code take, by suite, or why it cannot be used.
        self.baselines: dict[str, float | ListError] = {}

    def run(self, crate: str, filters: list[str], log: str, limit: float | None = None) -> Ran:
        """Builds the tests of a crate and runs those that fit a filter: all if there is none."""
        test = ["test", *self.selection(crate), "--message-format", "short"]
        programs = ["build", "--workspace", "--bins", "--message-format", "short"]
        if crate == BLACK_BOX and not filters:
            self.cargo(programs, log)
        # Compiling and waiting for another cargo have no time limit: only tests time out.
        status, output = self.cargo([*test, "--no-run"], log)
        if status != 0:
            return of_output(output, status)
        tests = [*test, "--", *filters]
        try:
            status, output = self.cargo(tests, log, limit)
            if PROGRAMS_MISSING in output:
                self.cargo(programs, log)
                status, output = self.cargo(tests, log, limit)
        except subprocess.TimeoutExpired:
            return Ran(passed=False, timed_out=True, seconds=limit or 0.0)
        return of_output(output, status)

    def selection(self, crate: str) -> list[str]:
        """Returns cargo's arguments for the tests of a crate.

        No other package is among them: what depends on the crate is not compiled again for each
        breakage.
        """
        if crate == BLACK_BOX:
            return ["--package", "tests", "--test", BLACK_BOX]
        folder = self.checkout / "crates" / crate
        if not folder.is_dir():
            raise ListError(f"no crate is called {crate}")
        manifest = tomlkit.parse((folder / "Cargo.toml").read_text()).unwrap()
        selection = ["--package", manifest["package"]["name"], "--lib"]
        for tests in sorted(folder.glob("tests/*")):
            selection += ["--test", tests.stem]
        return selection

    def cargo(self, command: list[str], log: str, limit: float | None = None) -> tuple[int, str]:
        """Runs cargo in a session of its own, which is killed as a whole when the time is up."""
        path = self.logs / f"{log}.log"
        with path.open("a+") as output:
            output.write(f"$ cargo {' '.join(command)}\n")
            output.flush()
            begin = output.tell()
            process = subprocess.Popen(
                ["cargo", command[0], "--locked", *command[1:]],
                cwd=self.checkout,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                status = process.wait(limit)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            output.seek(begin)
            return status, output.read()

    def baseline(self, suites: Iterable[str]) -> None:
        """Runs these tests with nothing broken, those of a crate at once."""
        new = sorted(suite.partition("::") for suite in set(suites) - self.baselines.keys())
        for crate, of_crate in groupby(new, lambda parts: parts[0]):
            filters = {"".join(parts): parts[2] for parts in of_crate}
            log = f"untouched-{crate}"
            (self.logs / f"{log}.log").unlink(missing_ok=True)
            try:
                named = [] if "" in filters.values() else list(filters.values())
                ran = self.run(crate, named, log)
            except ListError as error:
                self.baselines |= dict.fromkeys(filters, error)
                continue
            for suite, filter_ in filters.items():
                failed = [test for test in ran.failed if filter_ in test]
                if failed or not (ran.passed or ran.failed):
                    why = ran.error or ", ".join(failed) or "see the log"
                    text = f"{suite} fails with nothing broken ({why}): {self.logs / log}.log"
                    self.baselines[suite] = ListError(text)
                elif not any(filter_ in test for test in ran.tests):
                    self.baselines[suite] = ListError(f"no test matches {suite}")
                else:
                    self.baselines[suite] = ran.seconds

    def limit(self, suite: str) -> float:
        """Returns how many seconds these tests may take with something broken."""
        self.baseline([suite])
        seconds = self.baselines[suite]
        if isinstance(seconds, ListError):
            raise seconds
        return SLOWER * seconds + SPARE_SECONDS


# --- The verdicts ---------------------------------------------------------------------------------

CAUGHT, TIMED_OUT, EQUIVALENT = "caught", "timed out", "equivalent"
SURVIVED, REFUTED, UNUSABLE = "SURVIVED", "NOT EQUIVALENT", "LIST IS WRONG"
VERDICTS = (CAUGHT, TIMED_OUT, EQUIVALENT, SURVIVED, REFUTED, UNUSABLE)
BAD = (SURVIVED, REFUTED, UNUSABLE)


def judge(mutant: Mutant, runner: Runner, narrow: bool = False) -> tuple[str, str]:
    """Tests a breakage. Returns the verdict and the reason for it."""
    (runner.logs / f"{mutant.name}.log").unlink(missing_ok=True)
    try:
        for suite in mutant.suites(narrow):
            limit = runner.limit(suite)
            crate, _, filter_ = suite.partition("::")
            with broken(mutant, runner.checkout):
                ran = runner.run(crate, [filter_] if filter_ else [], mutant.name, limit)
            if ran.error is not None:
                return UNUSABLE, f"does not compile: {ran.error}"
            if ran.passed:
                continue
            if mutant.equivalent is not None:
                return REFUTED, by(suite, ran)
            return (TIMED_OUT if ran.timed_out else CAUGHT), by(suite, ran)
    except ListError as error:
        return UNUSABLE, str(error)
    if mutant.equivalent is not None:
        return EQUIVALENT, mutant.equivalent
    return SURVIVED, mutant.guard


@dataclass
class Verdicts:
    """The verdicts of earlier runs, in a file, which hold for one state of the sources."""

    path: Path
    sources: str
    reached: dict[str, tuple[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path.is_file():
            kept = json.loads(self.path.read_text())
            if kept["sources"] == self.sources:
                self.reached = {key: tuple(verdict) for key, verdict in kept["reached"].items()}

    @staticmethod
    def key(mutant: Mutant) -> str:
        """Returns what makes an entry the same one."""
        digest = hashlib.sha256(repr(astuple(mutant)).encode()).hexdigest()
        return f"{mutant.name} {digest[:16]}"

    def of(self, mutant: Mutant) -> tuple[str, str] | None:
        return self.reached.get(self.key(mutant))

    def keep(self, mutant: Mutant, verdict: tuple[str, str]) -> None:
        """Keeps a good verdict. What was bad is tried again by the next run."""
        if verdict[0] in BAD:
            return
        self.reached[self.key(mutant)] = verdict
        written = self.path.with_suffix(".new")
        written.write_text(json.dumps({"sources": self.sources, "reached": self.reached}, indent=1))
        written.replace(self.path)


def digest_of_sources(checkout: Path) -> str:
    """Returns a digest of what is compiled: the lists of breakages are not among it."""
    digest = hashlib.sha256()
    for path in sorted(sources()):
        if path.suffix in (".rs", ".toml", ".lock") and LISTS not in (ROOT / path).parents:
            content = (checkout / path).read_bytes()
            digest.update(f"{path} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def by(suite: str, ran: Ran) -> str:
    """Describes in a few words what noticed a breakage."""
    crate = suite.partition("::")[0]
    if ran.timed_out:
        return f"{crate}: no end after {ran.seconds:.0f} s"
    if not ran.failed:
        return f"{crate}: ended without a result"
    first, *others = ran.failed
    return f"{crate}: {first}" + (f" (+{len(others)})" if others else "")


def table(verdicts: list[tuple[Mutant, str]]) -> str:
    """Formats the totals, by area."""
    areas = sorted({mutant.area for mutant, _ in verdicts})
    shown = [v for v in VERDICTS if v not in BAD or any(v == of for _, of in verdicts)]
    width = max(len(area) for area in [*areas, "in all"])
    lines = [" ".join([" " * width, *(f"{verdict:>15}" for verdict in shown)])]
    for area in [*areas, None]:
        of_area = Counter(v for mutant, v in verdicts if area in (None, mutant.area))
        counts = [f"{of_area[verdict]:>15}" for verdict in shown]
        lines.append(" ".join([f"{area or 'in all':<{width}}", *counts]))
    return "\n".join(lines)


def try_all(mutants: list[Mutant], runner: Runner, narrow: bool, verdicts: Verdicts) -> int:
    """Tries each mutant and prints a line for it. Returns the exit code."""
    reached: list[tuple[Mutant, str]] = []
    interrupted = False
    try:
        # Before anything is broken, so that nothing is compiled twice.
        untried = [mutant for mutant in mutants if not verdicts.of(mutant)]
        runner.baseline(mutant.caught_by for mutant in untried)
        for place, mutant in enumerate(mutants, 1):
            began = time.monotonic()
            known = verdicts.of(mutant)
            verdict, why = known or judge(mutant, runner, narrow)
            reached.append((mutant, verdict))
            if not known:
                verdicts.keep(mutant, (verdict, why))
            took = "earlier" if known else f"{time.monotonic() - began:.0f} s"
            count = f"[{place:>{len(str(len(mutants)))}}/{len(mutants)}]"
            print(f"{count} {mutant.name}: {verdict}: {why} ({took})", flush=True)
    except KeyboardInterrupt:
        interrupted = True
    if reached:
        print(f"\n{table(reached)}")
    if interrupted:
        print(f"Interrupted: {len(mutants) - len(reached)} not tried", file=sys.stderr)
        return 130
    return int(any(verdict in BAD for _, verdict in reached))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", metavar="PATTERN", help="those whose name, area or file fits")
    parser.add_argument("--narrow", action="store_true", help="without the whole black box")
    parser.add_argument("--again", action="store_true", help="forget what earlier runs found")
    parser.add_argument("--list", action="store_true", help="say what there is, and try nothing")
    arguments = parser.parse_args()
    try:
        mutants = chosen(all_mutants(), arguments.only)
    except ListError as error:
        print(error, file=sys.stderr)
        return 1
    if not mutants:
        print(f"nothing fits {arguments.only}", file=sys.stderr)
        return 1
    if arguments.list:
        for mutant in mutants:
            print(f"{mutant.area:<12} {mutant.name}: {mutant.guard}")
        return 0
    # A terminated run restores what it has broken, as an interrupted one does. SIGINT is set too: a
    # shell makes its background jobs ignore it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    scratch = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve() / "mutants"
    checkout, logs = scratch / "checkout", scratch / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    with (scratch / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another run works in {scratch}", file=sys.stderr)
            return 1
        if arguments.again:
            (scratch / "verdicts.json").unlink(missing_ok=True)
        copy_checkout(checkout)
        verdicts = Verdicts(scratch / "verdicts.json", digest_of_sources(checkout))
        known = sum(verdicts.of(mutant) is not None for mutant in mutants)
        earlier = f", {known} of them already tried with these sources" if known else ""
        print(f"{len(mutants)} to try in {checkout}{earlier}; what the tests print is in {logs}")
        print("First the tests with nothing broken", flush=True)
        runner = Runner(checkout, scratch / "target", logs)
        return try_all(mutants, runner, arguments.narrow, verdicts)


if __name__ == "__main__":
    sys.exit(main())
