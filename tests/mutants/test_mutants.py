"""The list of breakages fits the current code, and the script parses what tests print."""

import re
import subprocess
from functools import cache

import pytest
import run
from run import ROOT, ListError, Mutant, Ran, Runner, all_mutants, by, chosen, of_output

MUTANTS = all_mutants()

LIST = """
[[mutant]]
name = "a-guard-is-lost"
guard = "It guards."
file = "crates/domain/src/record.rs"
find = "a < b"
replace = "true"
caught_by = "domain"
"""


def mutant(**changes: str) -> Mutant:
    fields = {
        "area": "decision",
        "name": "a-guard-is-lost",
        "guard": "It guards.",
        "file": "crates/domain/src/record.rs",
        "find": "a < b",
        "replace": "true",
        "caught_by": "domain::decision::",
    }
    return Mutant(**fields | changes)


@cache
def names_in(suite: str) -> set[str]:
    """Returns the names of the functions and modules in the sources of a suite."""
    sources = (
        (ROOT / "tests").glob("*.rs")
        if suite == run.BLACK_BOX
        else (ROOT / "crates" / suite).rglob("*.rs")
    )
    names = set()
    for source in sources:
        names |= {source.stem, source.parent.name}
        names |= set(re.findall(r"\b(?:fn|mod) (\w+)", source.read_text()))
    return names


@pytest.mark.parametrize("one", MUTANTS, ids=lambda one: one.name)
def test_an_entry_fits_the_code(one: Mutant):
    source = (ROOT / one.file).read_text()
    assert one.applied_to(source) != source


@pytest.mark.parametrize("one", MUTANTS, ids=lambda one: one.name)
def test_an_entry_says_what_it_breaks_and_what_tests_that(one: Mutant):
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", one.name)
    assert re.fullmatch(r"\S+( \S+){2,}\.", one.guard)
    suite, *filters = [part for part in one.caught_by.split("::") if part]
    assert suite == run.BLACK_BOX or (ROOT / "crates" / suite / "Cargo.toml").is_file()
    names = names_in(suite)
    for part in filters:
        assert any(part in name for name in names), f"{suite} has no {part}"


def test_names_are_in_no_two_entries():
    names = [one.name for one in MUTANTS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (LIST.replace("guard =", "guards ="), "unknown guards"),
        (LIST.replace('find = "a < b"', ""), "missing find"),
    ],
)
def test_a_list_with_an_unknown_or_a_missing_key_is_refused(tmp_path, wrong, why):
    path = tmp_path / "decision.toml"
    path.write_text(wrong)
    with pytest.raises(ListError, match=why):
        run.mutants_in(path)


def test_a_list_is_read(tmp_path):
    path = tmp_path / "decision.toml"
    path.write_text(LIST)
    assert run.mutants_in(path) == [mutant(caught_by="domain")]


@pytest.mark.parametrize(
    ("text", "why"), [("b < a", "not there"), ("a < b && a < b", "there 2 times")]
)
def test_what_an_entry_looks_for_is_there_once(text, why):
    with pytest.raises(ListError, match=why):
        mutant().applied_to(text)


def test_the_tests_grow_wider_and_end_with_the_black_box():
    everything = ["domain::decision::", "domain", "transition", "lifecycle", "offhours"]
    assert mutant().suites(narrow=False) == everything
    assert mutant().suites(narrow=True) == everything[:-1]
    of_lifecycle = mutant(file="crates/lifecycle/src/lib.rs", caught_by="offhours::kill::")
    assert of_lifecycle.suites(narrow=False) == ["offhours::kill::", "lifecycle", "offhours"]
    equivalent = mutant(equivalent="Nothing reaches it.")
    assert equivalent.suites(narrow=False) == ["domain::decision::", "domain"]


def test_a_pattern_chooses_by_name_area_or_file():
    mutants = [mutant(), mutant(name="another", area="store", file="crates/store/src/write.rs")]
    assert chosen(mutants, None) == mutants
    assert chosen(mutants, "guard") == mutants[:1]
    assert chosen(mutants, "sto*re") == mutants[1:]
    assert chosen(mutants, "src/write") == mutants[1:]
    assert chosen(mutants, "nothing") == []


PASSED = """
running 2 tests
test decision::tests::a_test ... ok
test decision::tests::another_test ... ok

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.50s
"""

FAILED = """
running 3 tests
test decision::tests::a_test ... ok
test decision::tests::the_second_test ... FAILED
test decision::tests::that_prints ... printed
FAILED

failures:

---- decision::tests::the_second_test stdout ----
assertion failed: left == right

failures:
    decision::tests::that_prints
    decision::tests::the_second_test

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1.25s
"""


def test_what_passed_and_what_failed_is_read_from_what_tests_print():
    two = ("decision::tests::a_test", "decision::tests::another_test")
    assert of_output(PASSED, 0) == Ran(passed=True, tests=two, seconds=0.5)
    assert of_output(PASSED + PASSED, 0) == Ran(passed=True, tests=two + two, seconds=1.0)
    failed = ("decision::tests::that_prints", "decision::tests::the_second_test")
    three = (two[0], failed[1], failed[0])
    assert of_output(FAILED, 101) == Ran(passed=False, failed=failed, tests=three, seconds=1.25)
    assert of_output("running 1 test\n", 101) == Ran(passed=False)
    error = "src/a.rs:1:2: error: no"
    assert of_output(f"{error}\n", 101) == Ran(passed=False, error=error)


def test_a_line_says_which_test_noticed():
    failed = of_output(FAILED, 101)
    assert by("domain::decision::", failed) == "domain: decision::tests::that_prints (+1)"
    timed_out = Ran(passed=False, timed_out=True, seconds=90.2)
    assert by("offhours::kill::", timed_out) == "offhours: no end after 90 s"
    assert by("store", Ran(passed=False)) == "store: ended without a result"


def test_the_compilers_first_error_is_shown():
    output = "   Compiling domain\nsrc/a.rs:1:2: error[E0425]: no value `x`\nsrc/b.rs: error: two\n"
    assert run.first_error(output) == "src/a.rs:1:2: error[E0425]: no value `x`"


def test_the_copy_is_whole_again_whatever_happens(tmp_path):
    path = tmp_path / "crates/domain/src/record.rs"
    path.parent.mkdir(parents=True)
    path.write_text("if a < b {")
    with pytest.raises(KeyboardInterrupt), run.broken(mutant(), tmp_path):
        assert path.read_text() == "if true {"
        raise KeyboardInterrupt
    assert path.read_text() == "if a < b {"


def test_the_copy_follows_the_checkout_and_leaves_alone_what_is_the_same(tmp_path, monkeypatch):
    checkout, copy = tmp_path / "checkout", tmp_path / "copy"
    checkout.mkdir()
    monkeypatch.setattr(run, "ROOT", checkout)
    subprocess.run(["git", "init", "--quiet", checkout], check=True)
    (checkout / "same").write_text("1")
    (checkout / "other").write_text("1")
    (checkout / "removed").write_text("1")
    run.copy_checkout(copy)
    written = (copy / "same").stat().st_mtime_ns
    (checkout / "other").write_text("2")
    (checkout / "removed").unlink()
    run.copy_checkout(copy)
    assert (copy / "same").stat().st_mtime_ns == written
    assert (copy / "other").read_text() == "2"
    assert not (copy / "removed").exists()


class Cargo(Runner):
    """A runner whose cargo prints given texts, one after the other."""

    def __init__(self, tmp_path, *prints: tuple[int, str]):
        super().__init__(tmp_path, tmp_path, tmp_path)
        self.prints = list(prints)
        self.commands: list[str] = []
        self.limits: list[float | None] = []

    def cargo(self, command, log, limit=None):
        self.commands.append(command[0])
        self.limits.append(limit)
        return self.prints.pop(0)


def test_programs_are_built_where_tests_of_the_black_box_miss_them(tmp_path):
    missing = (101, f"no target/debug/offhours: {run.PROGRAMS_MISSING}, as `make test` does")
    cargo = Cargo(tmp_path, (0, ""), missing, (0, ""), (0, PASSED))
    assert cargo.run("offhours", ["kill::"], "a-log").passed
    assert cargo.commands == ["test", "test", "build", "test"]
    cargo = Cargo(tmp_path, (0, ""), (0, ""), (0, PASSED))
    assert cargo.run("offhours", [], "a-log").passed
    assert cargo.commands == ["build", "test", "test"]


def test_only_tests_can_time_out(tmp_path):
    cargo = Cargo(tmp_path, (0, ""), (0, PASSED))
    assert cargo.run("offhours", ["kill::"], "a-log", 7).passed
    assert cargo.limits == [None, 7]
    cargo = Cargo(tmp_path, (101, "error[E0425]: cannot find value"))
    failed = cargo.run("offhours", ["kill::"], "a-log", 7)
    assert failed.error == "error[E0425]: cannot find value"


class Scripted(Runner):
    """A runner with given results by suite: for the untouched code, and for the broken one."""

    def __init__(self, tmp_path, results: dict[str, tuple[Ran, Ran]]):
        super().__init__(tmp_path, tmp_path, tmp_path)
        self.results = results
        self.runs = 0
        self.source = tmp_path / mutant().file
        self.source.parent.mkdir(parents=True)
        self.source.write_text("if a < b {")

    def run(self, crate, filters, log, limit=None):
        self.runs += 1
        untouched, broken = self.results["::".join([crate, *filters])]
        return broken if "true" in self.source.read_text() else untouched


A_TEST = "decision::a_test"
OK = Ran(passed=True, tests=(A_TEST,))
NO = Ran(passed=False, failed=(A_TEST,), tests=(A_TEST,))


ALL_PASS = dict.fromkeys(("domain::decision::", "domain", "transition", "lifecycle"), (OK, OK))


@pytest.mark.parametrize(
    ("suites", "changes", "verdict", "why"),
    [
        ({"domain::decision::": (OK, NO)}, {}, run.CAUGHT, "domain: decision::a_test"),
        (
            ALL_PASS | {"lifecycle": (OK, NO)},
            {},
            run.CAUGHT,
            "lifecycle: decision::a_test",
        ),
        (
            ALL_PASS,
            {},
            run.SURVIVED,
            "It guards.",
        ),
        (
            {"domain::decision::": (OK, Ran(passed=False, timed_out=True, seconds=61))},
            {},
            run.TIMED_OUT,
            "domain: no end after 61 s",
        ),
        (
            {"domain::decision::": (OK, OK), "domain": (OK, OK)},
            {"equivalent": "Nothing reaches it."},
            run.EQUIVALENT,
            "Nothing reaches it.",
        ),
        (
            {"domain::decision::": (OK, NO)},
            {"equivalent": "Nothing reaches it."},
            run.REFUTED,
            "domain: decision::a_test",
        ),
        (
            {"domain::decision::": (OK, Ran(passed=False, error="error: no"))},
            {},
            run.UNUSABLE,
            "does not compile: error: no",
        ),
        (
            {"domain::decision::": (NO, NO)},
            {},
            run.UNUSABLE,
            "domain::decision:: fails with nothing broken",
        ),
        (
            {"domain::decision::": (Ran(passed=True), NO)},
            {},
            run.UNUSABLE,
            "no test matches domain::decision::",
        ),
        (
            {"domain::decision::": (Ran(passed=False, error="error: no"), NO)},
            {},
            run.UNUSABLE,
            "fails with nothing broken (error: no)",
        ),
        ({"domain::decision::": (OK, NO)}, {"find": "c < d"}, run.UNUSABLE, "not there"),
    ],
)
def test_what_became_of_a_breakage(tmp_path, suites, changes, verdict, why):
    found = run.judge(mutant(**changes), Scripted(tmp_path, suites), narrow=True)
    assert found[0] == verdict
    assert why in found[1]


def test_the_exit_code_and_the_table_show_what_survived(tmp_path, capsys):
    suites = {"domain::decision::": (OK, OK), "domain": (OK, NO)}
    verdicts = run.Verdicts(tmp_path / "verdicts.json", "sources")
    assert run.try_all([mutant()], Scripted(tmp_path / "1", suites), True, verdicts) == 0
    assert "SURVIVED" not in capsys.readouterr().out
    suites |= {"domain": (OK, OK), "transition": (OK, OK), "lifecycle": (OK, OK)}
    verdicts = run.Verdicts(tmp_path / "verdicts.json", "other sources")
    assert run.try_all([mutant()], Scripted(tmp_path / "2", suites), True, verdicts) == 1
    assert re.search(r"^in all( +\d+){4}$", capsys.readouterr().out, re.MULTILINE)


class Filtered(Runner):
    """A runner of one crate with three tests, one of which fails."""

    def __init__(self, tmp_path):
        super().__init__(tmp_path, tmp_path, tmp_path)
        self.filters: list[list[str]] = []

    def run(self, crate, filters, log, limit=None):
        self.filters.append(filters)
        tests = [t for t in ("a::one", "b::two", "b::three") if any(f in t for f in filters)]
        failed = tuple(test for test in tests if test == "b::two")
        return Ran(passed=not failed, failed=failed, tests=tuple(tests), seconds=2.0)


def test_with_nothing_broken_the_tests_of_a_crate_run_once(tmp_path):
    runner = Filtered(tmp_path)
    runner.baseline(["domain::b::", "domain::a::", "domain::c::", "domain::a::"])
    assert runner.filters == [["a::", "b::", "c::"]]
    assert runner.limit("domain::a::") == run.SLOWER * 2 + run.SPARE_SECONDS
    with pytest.raises(ListError, match=r"domain::b:: fails with nothing broken \(b::two\)"):
        runner.limit("domain::b::")
    with pytest.raises(ListError, match="no test matches domain::c::"):
        runner.limit("domain::c::")
    assert len(runner.filters) == 1


def test_a_later_run_goes_on_where_an_earlier_one_ended(tmp_path, capsys):
    kept = tmp_path / "verdicts.json"
    suites = {"domain::decision::": (OK, NO)}

    def tried(folder: str, sources: str, one: Mutant) -> int:
        runner = Scripted(tmp_path / folder, suites)
        assert run.try_all([one], runner, True, run.Verdicts(kept, sources)) == 0
        return runner.runs

    assert tried("1", "sources", mutant()) == 2
    assert tried("2", "sources", mutant()) == 0
    assert "caught: domain: decision::a_test (earlier)" in capsys.readouterr().out
    assert tried("3", "sources", mutant(guard="It guards more.")) == 2
    assert tried("4", "other sources", mutant()) == 2


def test_a_breakage_that_survived_is_tried_again(tmp_path):
    kept = tmp_path / "verdicts.json"
    suites = dict.fromkeys(mutant().suites(narrow=True), (OK, OK))
    for folder in ("1", "2"):
        runner = Scripted(tmp_path / folder, suites)
        assert run.try_all([mutant()], runner, True, run.Verdicts(kept, "sources")) == 1
        assert runner.runs == 8


def test_the_sources_are_what_is_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "LISTS", tmp_path / "tests/mutants")
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / "tests/mutants").mkdir(parents=True)
    (tmp_path / "Cargo.toml").write_text("[workspace]")
    before = run.digest_of_sources(tmp_path)
    (tmp_path / "README.md").write_text("# Offhours")
    (tmp_path / "tests/mutants/plan.toml").write_text(LIST)
    assert run.digest_of_sources(tmp_path) == before
    (tmp_path / "Cargo.toml").write_text("[workspace] # changed")
    assert run.digest_of_sources(tmp_path) != before
