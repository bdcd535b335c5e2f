"""Evaluates a schedule as AWS Instance Scheduler does: `instance_scheduler.py ZONE COUNT`.

A port of its evaluation, in our own words, of `configuration/instance_schedule.py` and
`configuration/running_period.py` from aws-solutions/instance-scheduler-on-aws at commit 675da38,
which is not published as a package. It decides by the same steps in the same order: the instant in
the schedule's time zone, each period by weekday, month, day and time, `running` before `any` before
`stopped`, and a minute before and after where periods may adjoin. It omits what would only cost
more time: the debug log, and parsing the periods' expressions, which the original does once a run.
"""

from __future__ import annotations

import json
import sys
import time as clock
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

STEP = 24 * 60 * 60 + 3607
TEN_YEARS = 3_652 * 24 * 60 * 60


@dataclass
class Period:
    """A time to run, with its expressions parsed. A field that is None allows everything."""

    name: str
    begin: time | None = None
    end: time | None = None
    weekdays: frozenset[int] | None = None
    months: frozenset[int] | None = None
    monthdays: frozenset[int] | None = None

    def state(self, at: datetime) -> str:
        """Returns the state that this period alone asks for."""
        if self.weekdays is not None and at.weekday() not in self.weekdays:
            return "stopped"
        if self.months is not None and at.month not in self.months:
            return "stopped"
        if self.monthdays is not None and at.day not in self.monthdays:
            return "stopped"
        return self._state_by_time(time(at.hour, at.minute, at.second))

    def _state_by_time(self, at: time) -> str:
        if self.begin is None and self.end is None:
            return "running"
        if self.begin is None:
            return "stopped" if at >= self.end else "any"
        if self.end is None:
            return "running" if at >= self.begin else "any"
        return "running" if self.begin <= at < self.end else "stopped"


@dataclass
class Schedule:
    """Periods in a time zone."""

    zone: ZoneInfo
    periods: list[Period]

    def desired_state(self, at: datetime) -> tuple[str, str | None]:
        """Returns the desired state at an instant, and the period that decides it."""
        local = at.astimezone(self.zone)
        state, name = self._state_at(local)
        if len(self.periods) > 1 and state == "stopped":
            # Between two periods, one of which ends in the minute before the other begins.
            before, _ = self._state_at(local - timedelta(minutes=1))
            after, next_name = self._state_at(local + timedelta(minutes=1))
            if before == after == "running":
                return after, next_name
        return state, name

    def _state_at(self, local: datetime) -> tuple[str, str | None]:
        states = [(period, period.state(local)) for period in self.periods]
        if any(state == "running" for _, state in states):
            running = [period for period, state in states if state == "running"]
            return "running", _begun_last(running).name
        if any(state == "any" for _, state in states):
            return "any", None
        return "stopped", None


def _begun_last(periods: list[Period]) -> Period:
    last = periods[0]
    for period in periods:
        if period.begin is None:
            continue
        if last.begin is None or period.begin > last.begin:
            last = period
    return last


def schedule(zone: str) -> Schedule:
    """Returns the schedule of the program `evaluations`."""
    summer = {7, 8}
    return Schedule(
        ZoneInfo(zone),
        [
            Period("office", time(8), time(19), weekdays=frozenset(range(5))),
            Period(
                "saturday",
                time(10),
                time(14),
                weekdays=frozenset({5}),
                months=frozenset(set(range(1, 13)) - summer),
            ),
            Period("closing", time(20), time(23), monthdays=frozenset({28, 29, 30, 31})),
        ],
    )


def main(zone: str, count: int) -> None:
    """Evaluates the schedule at the same instants as `evaluations`, and prints the same fields."""
    evaluated = schedule(zone)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    instants = [start + timedelta(seconds=index * STEP % TEN_YEARS) for index in range(count)]
    began = clock.perf_counter()
    running = sum(evaluated.desired_state(instant)[0] == "running" for instant in instants)
    nanoseconds = (clock.perf_counter() - began) * 1e9 / count
    print(json.dumps({"nanoseconds": round(nanoseconds, 1), "running": running}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
