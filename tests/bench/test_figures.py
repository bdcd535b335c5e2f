"""The arithmetic of `make bench`, on made-up rounds."""

from __future__ import annotations

import re

import pytest

from .figures import (
    AGAINST_FLOOR,
    MEASURES,
    OURS,
    SUBJECTS,
    Result,
    cold,
    percentile,
    ratio,
    targets,
)


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(value) for value in range(20, 0, -1)]
    assert percentile(values, 50) == 10
    assert percentile(values, 90) == 18
    assert percentile(values, 99) == 20
    assert percentile(values, 0) == 1
    assert percentile([7.0], 90) == 7


def test_there_is_no_percentile_of_nothing() -> None:
    with pytest.raises(ValueError):
        percentile([], 50)


def test_a_ratio_compares_within_each_round() -> None:
    # The machine is ten times slower in the last round: the ratio of medians would be 2.5.
    assert ratio([2, 4, 60], [1, 2, 20]) == 2
    assert ratio([2, 30, 40], [1, 10, 20]) == 2


def test_rounds_of_two_runs_are_not_compared() -> None:
    with pytest.raises(ValueError):
        ratio([1, 2], [1])


def test_a_cold_start_is_the_start_up_and_the_first_invocation_of_one_round() -> None:
    assert cold({"start_up_ms": [1, 2], "first_ms": [10, 20]}) == [11, 22]


def result(**other: float) -> Result:
    """A run in which every value is 1, except for the subjects that `other` names."""
    return {
        "subjects": {
            name: {
                "zip_bytes": 3_000_000,
                "samples": dict.fromkeys(MEASURES, [other.get(re.split("[,-]", name)[0], 1.0)] * 3),
            }
            for name in SUBJECTS
        },
        "idle": {"requests": {"1": 2, "1000": 2}},
        "large": {"records": 10_000, "cpu_ms": [400, 900, 500], "memory_mib": [30, 31, 32]},
    }


def missed(found: Result) -> set[str]:
    return {target.what for target in targets(found) if not target.met}


def test_all_targets_are_met_by_functions_that_are_quick_and_small() -> None:
    assert missed(result(boto3=40, floor=0.8)) == set()


def test_each_function_is_held_to_its_own_distance_from_the_floor() -> None:
    found = result(boto3=40)
    found["subjects"]["floor-dispatch"]["samples"]["warm_p50_ms"] = [0.7] * 3
    assert missed(found) == {"dispatch, warm, against its floor"}
    slow = {
        f"{name}, {what}, against its floor"
        for name in OURS
        for what in AGAINST_FLOOR
        if what != "archive"
    }
    assert missed(result(boto3=40, floor=0.7)) == slow


def test_a_peer_that_is_nearly_as_quick_is_a_target_missed() -> None:
    close = missed(result(boto3=4.5))
    assert close == {
        f"boto3, {what}, against {name}" for what in ("cold", "memory") for name in OURS
    }


def test_an_archive_a_request_and_a_second_too_many_are_targets_missed() -> None:
    found = result(boto3=40)
    found["subjects"]["dispatch"]["zip_bytes"] = 4_500_001
    found["idle"]["requests"]["1000"] = 4
    found["large"]["cpu_ms"] = [900, 1001, 1100]
    assert missed(found) == {
        "dispatch, archive, against its floor",
        "requests to DynamoDB of an idle tick over 1,000 records",
        "dispatch over 10,000 due records, CPU",
    }
