"""Acts reach the simulator and the command, and end when their time is over."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from rehearsal.simulator import Refusal

from . import play
from .layout import Edge, Layout
from .plan import Act, Apply, Calm, Command, Create, Deed, Fault, Hold, Person, Rehearse
from .play import Player

RATE = Fault({"account": "hz-eu"}, {"answer": {"status": 429}}, 2, 60)
TOKEN = Fault({"account": "do-main"}, "unauthorized", 1000, 200)
SERVER = "hz-eu/server/41"


class Clouds:
    """A simulator that records what is asked of it, and refuses to delete."""

    def __init__(self) -> None:
        self.set: list[Any] = []
        self.holds: list[Any] = []
        self.ended: list[tuple[int, bool]] = []
        self.people: list[Any] = []

    def misbehave(self, match: Any, does: Any, times: int) -> None:
        self.set.append((match, does, times))

    def behave(self) -> None:
        self.set.clear()

    def hold(self, hold: Any) -> int:
        self.holds.append(hold)
        return len(self.holds)

    def end_hold(self, number: int, *, discard: bool) -> None:
        self.ended.append((number, discard))

    def person(self, resource: str, act: Any) -> None:
        if act == "delete":
            raise Refusal("423: locked")
        self.people.append((resource, act))

    def create(self, toml: str) -> None:
        self.people.append(toml)


class Operator:
    """A command that ends with a preset exit code or, if that is negative, times out."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, ...]] = []
        self.code = 0

    def run(self, *arguments: str, timeout: float) -> subprocess.CompletedProcess[str]:
        self.ran.append(arguments)
        if self.code < 0:
            raise subprocess.TimeoutExpired("offhours", timeout)
        return subprocess.CompletedProcess([], self.code, "", "error: no such name\nmore")


class Stage:
    """A player, the fakes that it plays with, and a movable clock."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(play.time, "time", lambda: self.now)
        self.clouds, self.operator, self.acted = Clouds(), Operator(), []
        self.directory = directory
        self.player = Player(self.clouds, self.operator, directory, self.acted.append)

    def perform(self, deed: Deed) -> str | None:
        return self.player.perform(Act(0, "", "", deed))

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        self.player.expire()


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


def test_a_fault_ends_with_its_time_and_the_others_stay(stage: Stage) -> None:
    stage.perform(RATE)
    stage.perform(TOKEN)
    assert len(stage.clouds.set) == 2
    stage.pass_by(59)
    assert len(stage.clouds.set) == 2
    stage.pass_by(1)
    assert stage.clouds.set == [(TOKEN.match, TOKEN.does, TOKEN.times)]
    stage.pass_by(140)
    assert stage.clouds.set == []


@pytest.mark.parametrize("discard", [True, False])
def test_a_hold_ends_with_its_time_as_it_is_meant_to(stage: Stage, discard: bool) -> None:
    stage.perform(Hold({"at": "answer"}, 20, discard))
    stage.pass_by(19)
    assert stage.clouds.ended == []
    stage.pass_by(1)
    stage.pass_by(1)
    assert stage.clouds.ended == [(1, discard)]


def test_the_calm_ends_all_of_them(stage: Stage) -> None:
    stage.perform(TOKEN)
    stage.perform(Hold({"at": "answer"}, 20, False))
    stage.perform(Calm())
    assert (stage.clouds.set, stage.clouds.ended) == ([], [(1, False)])
    stage.pass_by(300)
    assert len(stage.clouds.ended) == 1


def test_what_a_person_does_is_noted_and_may_be_refused(stage: Stage) -> None:
    assert stage.perform(Person(SERVER, "power_on")) is None
    assert stage.perform(Person(SERVER, "delete")) == "refused: 423: locked"
    assert stage.perform(Create("[[servers]]")) is None
    assert stage.clouds.people == [(SERVER, "power_on"), "[[servers]]"]
    assert stage.acted == [SERVER, SERVER]


@pytest.mark.parametrize(
    ("code", "became"),
    [
        (0, None),
        (3, None),
        (1, "exit code 1: error: no such name"),
        (-1, "still at it after 60 s, and ended"),
    ],
)
def test_what_became_of_a_command_is_said(stage: Stage, code: int, became: str | None) -> None:
    stage.operator.code = code
    assert stage.perform(Command(("stop", SERVER))) == became
    assert stage.operator.ran == [("stop", SERVER)]


def test_a_configuration_is_written_and_applied(stage: Stage) -> None:
    layout = Layout({"rota": [Edge(1_800_000_000.0, "stopped")]})
    stage.perform(Apply(layout))
    path = stage.directory / "offhours.toml"
    assert stage.operator.ran == [("apply", "--config", str(path), "--yes", "--loosen")]
    assert path.read_text() == layout.toml()


def rehearsed(stage: Stage) -> list[tuple[str, ...]]:
    """What the operator has run when the rehearsals are over."""
    assert stage.perform(Rehearse(SERVER)) is None
    for thread in stage.player.rehearsals:
        thread.join()
    return stage.operator.ran


def test_a_rehearsal_is_run_once_if_it_succeeds(stage: Stage) -> None:
    assert rehearsed(stage) == [("rehearse", SERVER, "--yes")]


@pytest.mark.parametrize("code", [1, 3, -1])
def test_a_rehearsal_is_tried_again_until_the_calm(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(play, "BETWEEN_REHEARSALS", 0.0)
    stage.operator.code = code
    run = stage.operator.run

    def run_twice(*arguments: str, timeout: float) -> subprocess.CompletedProcess[str]:
        if len(stage.operator.ran) == 1:
            stage.player.calm()
        return run(*arguments, timeout=timeout)

    monkeypatch.setattr(stage.operator, "run", run_twice)
    assert len(rehearsed(stage)) == 2
