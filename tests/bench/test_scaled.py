"""How the course of a fleet is broken down into its parts."""

from __future__ import annotations

from . import costs, report, scaled
from .figures import Result
from .fleet import Fleet


def part(ticks: int, inventories: int, cpu_ms: float, write: float, **more: object) -> Result:
    units = {"offhours-resources/due": {"read": 0.0, "write": write}}
    return {
        "ticks": ticks,
        "inventories": inventories,
        "cpu_ms": cpu_ms,
        "memory_mib": 50.0,
        "units": units,
        **more,
    }


def size() -> Result:
    """A process takes 10 ms, a tick 1, an inventory 20, a stop of everything 300 and 500 units."""
    edge = {"too_many": 0, "sent": 101, "last_at": "2026-11-23T18:02:02Z"}
    return {
        "resources": 100,
        "accounts": 2,
        "schedules": 5,
        "a_minute": 25,
        "process": part(0, 0, 10.0, 0.0),
        "parts": {
            "quiet": part(2, 0, 12.0, 0.0),
            "inventory": part(2, 2, 10.0 + 2 + 2 * 20, 0.0),
            "stop": part(12, 3, 10.0 + 12 + 3 * 20 + 300, 500.0, **edge),
            "start": part(12, 3, 10.0 + 12 + 3 * 20 + 200, 500.0, **edge),
        },
    }


def test_a_part_is_what_it_takes_besides_its_process_its_ticks_and_its_inventories() -> None:
    found = size()
    assert scaled.tick_ms(found) == 1.0
    assert scaled.besides_ticks(found, "inventory", scaled.cpu) == 20.0
    assert scaled.besides_ticks(found, "stop", scaled.cpu) == 300.0
    assert scaled.besides_ticks(found, "start", scaled.cpu) == 200.0


def test_a_part_never_takes_less_than_nothing() -> None:
    found = size()
    found["process"] = part(0, 0, 60.0, 0.0)
    assert scaled.tick_ms(found) == 0.0
    assert scaled.besides_ticks(found, "inventory", scaled.cpu) == 0.0


def test_an_edge_is_held_to_its_requests_and_to_what_the_limit_makes_of_it() -> None:
    found = size()
    assert scaled.requests_each(found) == 1.01
    assert scaled.last_after(found) == 122.0
    # Fifty in each account, at 25 a minute.
    assert scaled.floor(found) == 120.0
    assert [target.met for target in scaled.targets(found)] == [True, True]
    found["parts"]["stop"] |= {"sent": 103, "last_at": "2026-11-23T18:02:13Z"}
    assert [target.met for target in scaled.targets(found)] == [False, False]


def test_the_index_says_how_many_stops_a_minute_one_partition_takes() -> None:
    words = scaled.indexed(size())
    assert "writes 5.0 units" in words
    assert "12,000 stops a minute" in words


def test_the_section_leaves_out_a_fleet_that_holds_nothing() -> None:
    run = {
        "sizes": [size() | {"resources": 0}, size()],
        "command": "make scale",
        "commit": "0123456789ab",
        "date": "2026-11-23",
    }
    section = report.of_scale(run, "![Growth](docs/growth.svg)")
    rows = [line for line in section.splitlines() if line.startswith("| 100 |")]
    assert len(rows) == 2
    assert "| 0 |" not in section.split("## Scale")[1].split("![Growth]")[0].splitlines()[4]
    assert "![Growth](docs/growth.svg)" in section
    assert report.of_scale(None, "") == ""


def test_a_fleet_is_spread_evenly() -> None:
    fleet = Fleet(10_000)
    assert (fleet.accounts, fleet.schedules) == (20, 500)
    assert fleet.clouds().count("[[droplets]]") == fleet.clouds().count("[[servers]]") == 5000
    assert fleet.configuration().count("[schedules.") == 500
    assert (Fleet(0).accounts, Fleet(0).schedules) == (2, 1)


def test_a_bill_grows_with_the_fleet_and_its_edges_and_adds_up() -> None:
    def counted(writes: float) -> Result:
        invocations = {"dispatch": {"count": 1, "seconds": 0}}
        more = {"store_requests": 10, "events": 1, "log_bytes": 100, "invocations": invocations}
        found = size()
        for one in (found["process"], *found["parts"].values()):
            one |= more
        found["process"] |= {"store_requests": 0, "events": 0, "log_bytes": 0, "invocations": {}}
        found["parts"]["stop"]["units"] = {"offhours-resources": {"read": 0.0, "write": writes}}
        return found

    few, many = costs.bill(counted(1000.0)), costs.bill(counted(9000.0))
    assert abs(sum(few[:-1]) - few[-1]) < 1e-9
    # 8,000 write units more at each of thirty stops.
    assert abs(many[1] - few[1] - 8000 * 30 * 0.625 / 1e6) < 1e-9
