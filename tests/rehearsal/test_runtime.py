"""Functions as processes beside LocalStack: what a bootstrap gets, and how it may fail."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from offhours_localstack.runtime import InitError, Invocation, Runtime

HEAD = f"""#!{sys.executable}
import json, os, sys, time, urllib.request
API = "http://" + os.environ["AWS_LAMBDA_RUNTIME_API"] + "/2018-06-01/runtime/"

def post(path, body):
    urllib.request.urlopen(API + path, json.dumps(body).encode()).close()

def next_one():
    answer = urllib.request.urlopen(API + "invocation/next")
    return answer.headers["Lambda-Runtime-Aws-Request-Id"], json.load(answer), answer.headers
"""
ECHO = """
while True:
    id, event, headers = next_one()
    print("got", event, flush=True)
    post(f"invocation/{id}/response", {"event": event, "folder": os.getcwd(), **headers})
"""
FAILS = """
while True:
    id, event, headers = next_one()
    post(f"invocation/{id}/error", {"errorType": "Ours", "errorMessage": "no"})
"""
HANGS = """
next_one()
time.sleep(60)
"""
EXITS = """
next_one()
print("last words", flush=True)
sys.exit(3)
"""
KILLED = """
next_one()
os.kill(os.getpid(), 9)
"""


class Place:
    """A folder of code. The runtimes started in it are ended when the test ends."""

    def __init__(self, folder: Path) -> None:
        self.code = folder / "code"
        self.code.mkdir()
        self.output = folder / "output"
        self.runtimes: list[Runtime] = []

    def begin(self, program: str) -> Runtime:
        bootstrap = self.code / "bootstrap"
        bootstrap.write_text(HEAD + program)
        bootstrap.chmod(bootstrap.stat().st_mode | stat.S_IXUSR)
        runtime = Runtime(self.code, {"PATH": os.defpath}, self.output)
        self.runtimes.append(runtime)
        return runtime

    def ready(self, program: str) -> Runtime:
        runtime = self.begin(program)
        runtime.wait_until_ready()
        return runtime


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    for runtime in place.runtimes:
        runtime.end()


def event(number: int = 1, timeout: int = 30) -> Invocation:
    return Invocation(f"id-{number}", "arn:x", "Root=1", f"{number}".encode(), timeout)


def test_each_event_is_answered_with_its_own_log(place: Place) -> None:
    runtime = place.ready(ECHO)
    for number in (1, 2):
        outcome = runtime.invoke(event(number))
        assert not outcome.is_error
        assert outcome.log == f"got {number}\n"
        answer = json.loads(outcome.payload)
        assert (answer["event"], answer["folder"]) == (number, str(place.code))
        assert answer["Lambda-Runtime-Aws-Request-Id"] == f"id-{number}"
        assert answer["Lambda-Runtime-Invoked-Function-Arn"] == "arn:x"
        left = int(answer["Lambda-Runtime-Deadline-Ms"]) / 1000 - time.time()
        assert 0 < left <= 30


def test_an_error_of_the_function_is_one_and_it_serves_on(place: Place) -> None:
    runtime = place.ready(FAILS)
    for number in (1, 2):
        outcome = runtime.invoke(event(number))
        assert outcome.is_error
        assert json.loads(outcome.payload) == {"errorType": "Ours", "errorMessage": "no"}
    assert runtime.is_running()


def test_a_function_that_takes_too_long_is_ended(place: Place) -> None:
    runtime = place.ready(HANGS)
    outcome = runtime.invoke(event(timeout=1))
    assert outcome.is_error
    assert json.loads(outcome.payload) == {
        "errorType": "Sandbox.Timedout",
        "errorMessage": "RequestId: id-1 Error: Task timed out after 1.00 seconds",
    }
    assert not runtime.is_running()


@pytest.mark.parametrize(
    ("program", "how", "log"),
    [(EXITS, "exit status 3", "last words\n"), (KILLED, "signal: SIGKILL", "")],
)
def test_a_process_that_ends_is_an_error(place: Place, program: str, how: str, log: str) -> None:
    outcome = place.ready(program).invoke(event())
    assert outcome.is_error
    words = f"RequestId: id-1 Error: Runtime exited with error: {how}"
    assert json.loads(outcome.payload) == {"errorType": "Runtime.ExitError", "errorMessage": words}
    assert outcome.log == log


def test_a_process_that_does_not_ask_for_work_fails_its_start(place: Place) -> None:
    with pytest.raises(InitError, match="exit status 7"):
        place.ready("sys.exit(7)")


def test_an_error_of_the_start_is_in_the_functions_own_words(place: Place) -> None:
    with pytest.raises(InitError) as failed:
        place.ready('post("init/error", {"errorType": "Settings"}); time.sleep(60)')
    assert json.loads(failed.value.payload) == {"errorType": "Settings"}


def test_nothing_is_left_of_a_runtime_that_was_ended(place: Place) -> None:
    runtime = place.ready(HANGS)
    runtime.end()
    assert not runtime.is_running()
