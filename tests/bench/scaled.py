"""The findings of `make scale`, for BENCHMARKS.md."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from .figures import Result, Target

AN_EDGE = "2026-11-23T18:00:00Z"
A_PARTITION = 1000
"""Write units per second that one partition of DynamoDB accepts, in an index as well:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html"""
INDEX = "offhours-resources/due"


def besides_ticks(size: Result, name: str, value: Callable[[Result], float]) -> float:
    """Returns what an inventory took on top of its process and its ticks, or an edge on top of
    inventories as well."""
    parts, process = size["parts"], value(size["process"])

    def alone(part: Result) -> float:
        quiet = parts["quiet"]
        tick = max(0.0, value(quiet) - process) / quiet["ticks"]
        return max(0.0, value(part) - process - tick * part["ticks"])

    inventory = alone(parts["inventory"]) / parts["inventory"]["inventories"]
    if name == "inventory":
        return inventory
    return max(0.0, alone(parts[name]) - inventory * parts[name]["inventories"])


def cpu(part: Result) -> float:
    """Returns the processor time of the functions, in milliseconds."""
    return part["cpu_ms"]


def units(kind: str, table: str) -> Callable[[Result], float]:
    """Returns a getter for the capacity units of a table or an index."""
    return lambda part: part["units"].get(table, {}).get(kind, 0.0)


def tick_ms(size: Result) -> float:
    """Returns the processor time of a minute in which nothing is due, in milliseconds."""
    quiet = size["parts"]["quiet"]
    return max(0.0, cpu(quiet) - cpu(size["process"])) / quiet["ticks"]


def requests_each(size: Result) -> float:
    """Returns the requests to the clouds per stopped resource: changes and the observations before
    them, without inventories and the requests by which poll-status follows them."""
    return (size["parts"]["stop"]["sent"]) / size["resources"]


def peak_mib(size: Result) -> float:
    """Returns the most memory that the service took at an edge, in MiB."""
    return max(size["parts"][name]["memory_mib"] for name in ("stop", "start"))


def last_after(size: Result) -> float:
    """Returns the seconds from the edge until the last stop was requested."""
    last, edge = (datetime.fromisoformat(at) for at in (size["parts"]["stop"]["last_at"], AN_EDGE))
    return (last - edge).total_seconds()


def floor(size: Result) -> float:
    """Returns the seconds that the clouds' limits require: DigitalOcean's 250 requests a minute."""
    return 60 * size["resources"] / size["accounts"] / size["a_minute"]


def targets(size: Result) -> list[Target]:
    """Returns the targets for the largest fleet."""
    count = f"{size['resources']:,}"
    times = last_after(size) / floor(size)
    return [
        Target("requests for each resource that is stopped", 1.02, requests_each(size), "", True),
        Target(f"the last of {count} asked for, against the floor", 1.1, times, "times", True),
    ]


def filled(result: Result) -> list[Result]:
    """Returns the fleets that are not empty."""
    return [size for size in result["sizes"] if size["resources"]]


def indexed(size: Result) -> str:
    """Describes the load of an edge on the index's one partition."""
    written = besides_ticks(size, "stop", units("write", INDEX))
    each = written / size["resources"]
    return (
        f"The index `due` has one partition. A stop writes {each:.1f} units to it from first to "
        f"last, and a partition takes {A_PARTITION:,} a second: that is "
        f"{60 * A_PARTITION / each:,.0f} stops a minute. {size['resources']:,} that were due in "
        f"one minute would write {written / 60:,.0f} a second in it, if all of it fell into that "
        "minute."
    )


Column = tuple[str, Callable[[Result], str]]


def rows(sizes: list[Result], columns: list[Column]) -> list[list[str]]:
    """Returns a row for each fleet."""
    return [[show(size) for _, show in columns] for size in sizes]


def tables() -> dict[str, list[Column]]:
    """Returns the columns of the section's tables, by the tables' names."""

    def number(value: Callable[[Result], Any], digits: int = 0) -> Callable[[Result], str]:
        return lambda size: f"{value(size):,.{digits}f}"

    def each(name: str, kind: str, table: str) -> Callable[[Result], str]:
        of = units(kind, table)
        return lambda size: f"{besides_ticks(size, name, of) / size['resources']:.2f}"

    head: list[Column] = [("resources", number(lambda size: size["resources"]))]
    return {
        "course": [
            *head,
            ("accounts", number(lambda size: size["accounts"])),
            ("schedules", number(lambda size: size["schedules"])),
            ("quiet minute, ms", number(tick_ms, 1)),
            ("inventory, ms", number(lambda size: besides_ticks(size, "inventory", cpu))),
            ("stop, ms", number(lambda size: besides_ticks(size, "stop", cpu))),
            ("start, ms", number(lambda size: besides_ticks(size, "start", cpu))),
            ("memory, MiB", number(peak_mib)),
            ("requests each", number(requests_each, 3)),
            ("refused, 429", number(lambda size: size["parts"]["stop"]["too_many"])),
            ("last after, s", number(last_after)),
            ("floor, s", number(floor)),
        ],
        "units": [
            *head,
            ("inventory: read", each("inventory", "read", "offhours-resources")),
            ("stop: read", each("stop", "read", "offhours-resources")),
            ("index", each("stop", "read", INDEX)),
            ("stop: write", each("stop", "write", "offhours-resources")),
            ("index", each("stop", "write", INDEX)),
            ("history", each("stop", "write", "offhours-history")),
            ("accounts", each("stop", "write", "offhours-accounts")),
        ],
    }
