"""A run is planned from its seed, and its edges are where the plan says."""

from __future__ import annotations

import tomllib
from collections import Counter

import pytest

from . import fleet, rules
from .evidence import Entry
from .kinds import DatabaseSize, PoolSize
from .layout import Edge, Layout, opposite
from .plan import Act, Apply, Calm, Command, Hold, Person, Planner, Rehearse, calm_minutes
from .plan import Fault as Misbehaving

BEGIN = 1_800_000_000.0 // 60 * 60
SEEDS = range(20)


def planned(seed: int, minutes: int = 60) -> list[Act]:
    """The plan of a run."""
    return Planner(seed, minutes, BEGIN).plan()


def layouts(acts: list[Act]) -> list[tuple[float, Layout]]:
    """The layouts that are applied, and when."""
    return [(BEGIN + act.at, act.deed.layout) for act in acts if isinstance(act.deed, Apply)]


def test_the_same_seed_gives_the_same_plan() -> None:
    assert planned(7) == planned(7)
    assert planned(7) != planned(8)


@pytest.mark.parametrize("minutes", [12, 25, 60, 90])
def test_nothing_happens_in_the_calm_but_its_last_edges(minutes: int) -> None:
    calm = (minutes - calm_minutes(minutes)) * 60
    for seed in SEEDS:
        acts = planned(seed, minutes)
        late = [act.deed for act in acts if act.at >= calm - 1]
        assert [type(deed) for deed in late] == [Calm, Apply]
        for act in acts:
            if isinstance(act.deed, Misbehaving | Hold):
                assert act.at + act.deed.lasting <= calm


def test_an_override_ends_before_the_calm() -> None:
    for seed in SEEDS:
        for act in planned(seed):
            if isinstance(act.deed, Command) and "--for" in act.deed.arguments:
                lasting = int(act.deed.arguments[-2].rstrip("m"))
                assert act.at + lasting * 60 < 45 * 60


def test_every_kind_of_act_comes_up() -> None:
    who = Counter(act.who for seed in SEEDS for act in planned(seed))
    assert who.keys() == {"fault", "hold", "person", "operator", "calm"}
    assert min(who.values()) >= len(SEEDS)


@pytest.mark.parametrize("minutes", [12, 60])
def test_each_edge_is_where_the_written_schedule_has_it(minutes: int) -> None:
    for seed in SEEDS:
        found = layouts(planned(seed, minutes))
        for (start, layout), (end, _) in zip(
            found, [*found[1:], (BEGIN + 7200, None)], strict=True
        ):
            written = tomllib.loads(layout.toml())["schedules"]
            for name, edges in layout.edges.items():
                within = [edge for edge in edges if edge.at < end]
                # A hibernating machine may have its only edge after the segment.
                check(written[name], within or edges, start)


def check(definition: dict, edges: list[Edge], start: float) -> None:
    """Checks that a schedule desires what each edge says until the next, and before it the
    opposite."""
    assert edges[0].at > start
    assert rules.scheduled(definition, start) == opposite(edges[0].desired)
    for edge in edges:
        assert rules.scheduled(definition, edge.at - 1) == opposite(edge.desired)
        assert rules.scheduled(definition, edge.at) == edge.desired
    assert rules.scheduled(definition, edges[-1].at + 59) == edges[-1].desired


def test_the_last_edges_leave_some_stopped_and_some_running() -> None:
    last = [edge.desired for _, edges in last_edges() for edge in edges]
    assert set(last) == {rules.RUNNING, rules.STOPPED}


def last_edges() -> list[tuple[str, list[Edge]]]:
    """The edges of a calm, by schedule."""
    return list(layouts(planned(1))[-1][1].edges.items())


def test_a_hibernating_machine_is_rehearsed_and_has_its_time() -> None:
    references, ends = {member.reference for member in fleet.HIBERNATING}, set()
    for seed in SEEDS:
        acts = planned(seed)
        rehearsed = {act.deed.resource: act.at for act in acts if isinstance(act.deed, Rehearse)}
        assert rehearsed.keys() == references
        touched = {act.deed.resource for act in acts if isinstance(act.deed, Person)}
        assert not touched & references
        edges = [layout.edges[fleet.HIBERNATES] for _, layout in layouts(acts)]
        assert [edge.desired for (edge,) in edges[:2]] == [rules.STOPPED, rules.RUNNING]
        ends.add(edges[2][0].desired)
        assert edges[0][0].at - BEGIN >= max(rehearsed.values()) + 15 * 60
    assert ends == {rules.STOPPED, rules.RUNNING}


def test_a_period_may_cross_midnight() -> None:
    definition = {"periods": [{"begin": "23:50", "end": "00:10"}]}
    midnight = BEGIN // 86400 * 86400
    wanted = [rules.scheduled(definition, midnight + minutes * 60) for minutes in (-11, -10, 9, 10)]
    assert wanted == [rules.STOPPED, rules.RUNNING, rules.RUNNING, rules.STOPPED]


def test_the_fleet_has_every_kind_and_each_id_once() -> None:
    described = tomllib.loads(fleet.toml())
    ids = [one["id"] for table in ("droplets", "databases", "servers") for one in described[table]]
    ids += [pool["id"] for cluster in described["clusters"] for pool in cluster["pools"]]
    assert len(ids) == len(set(ids))
    members = {str(one.reference.rsplit("/", 1)[1]) for one in fleet.MEMBERS}
    assert members < {str(identity) for identity in ids}
    kinds = {one.kind for one in fleet.MEMBERS}
    assert kinds == {"droplet", "database", "node-pool", "server"}


def test_an_entry_is_read_as_the_simulator_writes_it() -> None:
    logged = {
        "sequence": 3,
        "at": "2026-11-23T00:33:56.123456789Z",
        "account": "hz-eu",
        "resource": "hz-eu/server/41",
        "changed": True,
        "faulty": False,
        "delivered": True,
        "request": {"method": "POST", "path": "/v1/servers/41/actions/poweron", "body": ""},
        "answer": {"status": 201, "body": '{"action": {"id"'},
    }
    entry = Entry.of(logged)
    assert (entry.status, entry.answer, entry.body) == (201, None, None)
    assert entry.asks_for_a_change
    assert Entry.of(logged | {"answer": None}).status is None


def test_sizes_cover_each_other_only_in_every_respect() -> None:
    large, wide = DatabaseSize("db-s-4vcpu-8gb", 1, 143360), DatabaseSize("db-s-1vcpu-2gb", 2)
    assert large.covers(DatabaseSize("db-s-2vcpu-4gb", 1, 61440))
    assert not large.covers(wide)
    assert not wide.covers(large)
    assert wide.restores(large), "a person chose another size"
    assert not large.covers(DatabaseSize("db-s-4vcpu-8gb", 1, 200000))
    assert PoolSize(3).covers(PoolSize(2))
    assert not PoolSize(3).covers(PoolSize(3, (1, 4)))
    assert not PoolSize(0).restores(PoolSize(0))
    assert PoolSize(1, (1, 5)).restores(PoolSize(2)), "a person switched its autoscaler on"
    assert not PoolSize(1, (2, 5)).restores(PoolSize(2))
    assert not PoolSize(1).restores(PoolSize(2))
    assert not PoolSize(2).restores(PoolSize(2, (1, 5)))
