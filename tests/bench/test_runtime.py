"""The runtime API, with a function of a few lines behind it."""

from __future__ import annotations

import sys

import pytest

from .runtime import FunctionFailed, Subject, live

FUNCTION = """
import http.client, os
api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
path = "/2018-06-01/runtime/invocation"
while True:
    api.request("GET", f"{path}/next")
    answer = api.getresponse()
    event = answer.read()
    request = answer.headers["Lambda-Runtime-Aws-Request-Id"]
    CHUNKED
    api.request("POST", f"{path}/{request}/ENDING", body)
    api.getresponse().read()
"""


def function(body: str = "body = event * 2", ending: str = "response") -> Subject:
    source = FUNCTION.replace("CHUNKED", body).replace("ENDING", ending)
    return Subject("echo", (sys.executable, "-c", source), {}, b'"event"')


@pytest.mark.parametrize("body", ["body = event * 2", "body = iter([event, event])"])
def test_a_function_is_measured_and_answers_each_invocation(body: str) -> None:
    life = live(function(body), warm=3)
    assert life.answer == b'"event""event"'
    assert len(life.warm_ms) == 3
    measured = [life.start_up_ms, life.first_ms, *life.warm_ms, life.cpu_ms, life.cold_cpu_ms]
    assert all(value > 0 for value in [*measured, life.memory_mib])


def test_a_failed_invocation_ends_the_run_with_its_reason() -> None:
    with pytest.raises(FunctionFailed, match=r"echo asked POST .*/error: no table"):
        live(function("body = b'no table'", "error"), warm=1)


def test_a_function_that_ends_is_reported_with_its_last_words() -> None:
    broken = Subject("broken", (sys.executable, "-c", "raise SystemExit('no setting')"), {}, b"")
    with pytest.raises(FunctionFailed, match="broken ended with 1\nno setting"):
        live(broken, warm=1)
