"""What the service itself costs at AWS in a month, for docs/costs.md: what `make scale` counted, at
AWS's prices for us-east-1. That page has the prices with their sources, and says what is an
estimate."""

from __future__ import annotations

from collections.abc import Callable

from . import scaled
from .figures import Result

FLEETS = (0, 100, 1000, 10_000, 100_000)
EDGES = 2
"""How often each resource is stopped or started in a day."""
DAYS = 30
TICKS = DAYS * 24 * 60
INVENTORIES = TICKS / 5
MEMORY_GB = 128 / 1024
PROCESSOR_GB = 1769 / 1024
"""The memory with which a function has a whole processor; with less, it has a smaller share:
https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html"""
STORE_ANSWER = 0.005
CLOUD_ANSWER = 0.2 / 8
"""Seconds; eight of the clouds' requests are in flight at a time."""
PLATFORM_LOG = 450
"""Bytes that AWS logs for each invocation."""
RECORD, HISTORY_ITEM, HISTORY_DAYS = 1100, 900, 90
KEY_REQUESTS = 5 * INVENTORIES
"""Five pairs of function and table, each at most once in five minutes."""

HEADINGS = ("resources", "Lambda", "DynamoDB", "KMS", "logs", "EventBridge", "watching", "total")


def bill(size: Result) -> list[float]:
    """Returns what a fleet costs in a month in US dollars: by service, and in total."""

    def a_month(value: Callable[[Result], float]) -> float:
        quiet = size["parts"]["quiet"]
        tick = max(0.0, value(quiet) - value(size["process"])) / quiet["ticks"]
        edges = sum(scaled.besides_ticks(size, edge, value) for edge in ("stop", "start"))
        inventory = scaled.besides_ticks(size, "inventory", value)
        return tick * TICKS + inventory * INVENTORIES + edges * DAYS * EDGES / 2

    def units(kind: str) -> Callable[[Result], float]:
        return lambda part: sum(table[kind] for table in part["units"].values())

    def invoked(what: str) -> Callable[[Result], float]:
        return lambda part: sum(one[what] for one in part["invocations"].values())

    invocations = a_month(invoked("count"))
    seconds = (
        a_month(scaled.cpu) / 1000 * PROCESSOR_GB / MEMORY_GB
        + a_month(invoked("seconds"))
        + a_month(lambda part: part["store_requests"]) * STORE_ANSWER
        + a_month(lambda part: part.get("requests", 0)) * CLOUD_ANSWER
    )
    stored = size["resources"] * (RECORD + HISTORY_ITEM * EDGES * HISTORY_DAYS) / 1e9
    logged = a_month(lambda part: part["log_bytes"]) + invocations * PLATFORM_LOG
    by_service = [
        invocations * 0.20 / 1e6 + seconds * MEMORY_GB * 0.0000166667,
        a_month(units("read")) * 0.125 / 1e6
        + a_month(units("write")) * 0.625 / 1e6
        + stored * (0.25 + 0.20),
        KEY_REQUESTS * 0.03 / 1e4,
        logged / 1e9 * 0.50,
        a_month(lambda part: part["events"]) * 1.00 / 1e6,
        15 * 0.10 + 10 * 0.30 + 3.00,
    ]
    return [*by_service, sum(by_service)]


def table(result: Result) -> str:
    """Returns the table for the page."""
    rows = [
        f"| {size['resources']:,} | {' | '.join(f'{usd:.2f}' for usd in bill(size))} |\n"
        for size in result["sizes"]
        if size["resources"] in FLEETS
    ]
    return "".join(
        [
            f"| {' | '.join(HEADINGS)} |\n",
            "|---:" * len(HEADINGS) + "|\n",
            *rows,
            f"\nCounted at {result['commit']} on {result['date']}.\n",
        ]
    )
