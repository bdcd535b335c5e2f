"""The arithmetic: medians, percentiles, ratios, and whether a target is met."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

DISPATCH = "dispatch"
OBSERVING = ("poll-status", "stop", "start")
OURS = (DISPATCH, *OBSERVING)
FLOOR = {DISPATCH: "floor-dispatch", **dict.fromkeys(OBSERVING, "floor-asking")}
"""The function that makes the same requests as each of ours, and does nothing else."""
BOTO3 = {DISPATCH: "boto3", **dict.fromkeys(OBSERVING, "boto3, asking")}
"""The boto3 function that each of ours is compared with."""
POWERTOOLS = "powertools"
PEERS = (*dict.fromkeys(BOTO3.values()), POWERTOOLS)
SUBJECTS = (*OURS, *dict.fromkeys(FLOOR.values()), *PEERS)

AGAINST_FLOOR = {"cold": 1.25, "warm": 1.25, "CPU": 1.3, "memory": 1.3, "archive": 1.5}
"""How many times as much as its floor each of our functions may take."""

MEASURES = {
    "start_up_ms": "start-up, ms",
    "first_ms": "first, ms",
    "warm_p50_ms": "warm p50, ms",
    "warm_p99_ms": "warm p99, ms",
    "cold_cpu_ms": "cold CPU, ms",
    "cpu_ms": "CPU, ms",
    "memory_mib": "memory, MiB",
}
"""What is measured of a function in each round, with its column heading."""

Samples = dict[str, Sequence[float]]
"""The values of each measure, one per round."""
Result = dict[str, Any]
"""Everything that a run found, in the form of its JSON file."""


def percentile(values: Sequence[float], percent: float) -> float:
    """Returns the smallest value that is at least as large as `percent` percent of all values."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    # Rounded first: a product of floats may be slightly more than the integer it stands for.
    rank = math.ceil(round(percent * len(ordered) / 100, 6))
    return ordered[max(rank, 1) - 1]


def median(values: Sequence[float]) -> float:
    """Returns the median."""
    return statistics.median(values)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Returns ours divided by theirs: the median over the rounds. Both values of a round were
    measured within seconds of each other, so what slows the machine for minutes slows both."""
    if len(ours) != len(theirs):
        raise ValueError("not of the same rounds")
    return median([one / other for one, other in zip(ours, theirs, strict=True)])


def cold(samples: Samples) -> list[float]:
    """Returns start-up plus first invocation, for each round."""
    pairs = zip(samples["start_up_ms"], samples["first_ms"], strict=True)
    return [start_up + first for start_up, first in pairs]


@dataclass(frozen=True)
class Target:
    """A target and the value that was measured."""

    what: str
    limit: float
    found: float
    unit: str
    at_most: bool

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.found <= self.limit if self.at_most else self.found >= self.limit


def targets(result: Result) -> list[Target]:
    """Returns all targets, in the order in which they are shown."""
    found = [target for name in OURS for target in _of_function(result, name)]
    if large := result.get("large"):
        due = f"dispatch over {large['records']:,} due records"
        found += [
            Target(f"{due}, CPU", 1000, median(large["cpu_ms"]), "ms", True),
            Target(f"{due}, memory", 64, median(large["memory_mib"]), "MiB", True),
        ]
    if idle := result.get("idle"):
        for fleet, requests in idle["requests"].items():
            what = f"requests to DynamoDB of an idle tick over {int(fleet):,} records"
            found.append(Target(what, 3, requests, "", True))
    return found


def _of_function(result: Result, name: str) -> list[Target]:
    samples = {key: one["samples"] for key, one in result["subjects"].items()}
    ours, boto3 = samples[name], samples[BOTO3[name]]
    limits = AGAINST_FLOOR.items()
    to_floor = [
        Target(f"{name}, {what}, against its floor", limit, found, "times", True)
        for (what, limit), found in zip(limits, above_floor(result, name), strict=True)
    ]
    memory = ratio(boto3["memory_mib"], ours["memory_mib"])
    return [
        *to_floor,
        Target(f"boto3, cold, against {name}", 40, ratio(cold(boto3), cold(ours)), "times", False),
        Target(f"boto3, memory, against {name}", 5, memory, "times", False),
    ]


def above_floor(result: Result, name: str) -> list[float]:
    """Returns one of our functions divided by its floor, in the order of `AGAINST_FLOOR`."""
    subjects = result["subjects"]
    one, other = subjects[name], subjects[FLOOR[name]]
    ours, floor = one["samples"], other["samples"]
    measured = [
        ratio(ours[measure], floor[measure]) for measure in ("warm_p50_ms", "cpu_ms", "memory_mib")
    ]
    return [ratio(cold(ours), cold(floor)), *measured, one["zip_bytes"] / other["zip_bytes"]]
