"""Each check finds what it is for, and finds nothing in a story in which all is well."""

from __future__ import annotations

from dataclasses import replace

import pytest

from . import checks
from .checks import CHECKS, FINAL, Check
from .evidence import Sight
from .story import BEGIN, DATABASE, DROPLET, POOL, SERVER, Story, at

LARGE = {"size": "db-s-4vcpu-8gb", "num_nodes": 1, "storage_size_mib": 143360}
SMALL = {"size": "db-s-1vcpu-1gb", "num_nodes": 1, "storage_size_mib": 10240}
SAVED = {"kind": "database", "plan": "db-s-4vcpu-8gb", "nodes": 1, "storage_mib": 143360}
POOL_SAVED = {"kind": "node-pool", "count": 3}
BUILDER = "hz-eu/server/47"
ASLEEP = "hz-eu/server/48"
OWN = {"offhours-of": "server.48", "offhours-mark": "m-1"}
IMAGE = {"image": {"id": 900, "status": "available", "labels": OWN}}
RECREATED = {"id": 901, "name": "web-1", "labels": {"offhours": "rota"} | OWN}
RECREATED |= {"status": "off", "server_type": {"name": "cx22"}}
PLAN_SAVED = {"kind": "machine", "plan": "cpx32"}
ON_LARGE, ON_SMALL = ({"server_type": {"name": plan}} for plan in ("cpx32", "cpx12"))
SETTLED = {"name": "settled"}


def found(check: Check, story: Story, until: float = 10_000.0) -> list[str]:
    """Returns what a check says about a story."""
    return [words for _, _, words in check(story.evidence(until))]


def a_night() -> Story:
    """A database, a pool and a deaf server are stopped and started as they should be."""
    story = Story().configured(rota={}, gentle={"force": False})
    story.shown(DATABASE, 1, **LARGE)
    story.claimed(DATABASE, "stop", 2, saved=SAVED)
    story.asked(DATABASE, "resize", 3, SMALL, status=202)
    story.recorded(DATABASE, 4, permit=None)
    story.shown(DATABASE, 60, **SMALL)
    story.recorded(DATABASE, 61, phase={"name": "settled", "at": "stopped"})
    story.ended(DATABASE, "stop", 2, 61, accepted_at=at(4))
    story.shown(DATABASE, 100, **SMALL)
    story.claimed(DATABASE, "start", 101)
    story.asked(DATABASE, "resize", 102, LARGE, status=202)
    story.shown(DATABASE, 160, **LARGE)
    story.ended(DATABASE, "start", 101, 161, accepted_at=at(103), saved=SAVED)
    settled = {"name": "settled", "at": "running"}
    story.recorded(DATABASE, 161, permit=None, saved=None, phase=settled)
    story.shown(POOL, 1, count=3)
    story.claimed(POOL, "stop", 2, saved=POOL_SAVED)
    story.asked(POOL, "scale", 3, {"count": 0, "auto_scale": False})
    story.shown(SERVER, 1)
    story.claimed(SERVER, "stop", 2, "w-1")
    story.asked(SERVER, "shutdown", 3)
    story.recorded(SERVER, 4, permit=None)
    story.shown(SERVER, 69)
    story.permitted(SERVER, 70, "w-2", request={"forced": "intended"})
    story.asked(SERVER, "poweroff", 71)
    story.ended(SERVER, "stop", 2, 80, accepted_at=at(4), forced=True)
    return hibernated(rescaled(story))


def hibernated(story: Story) -> Story:
    """A server is kept as a snapshot and deleted, and recreated under another id."""
    story.shown(ASLEEP, 1)
    story.claimed(ASLEEP, "stop", 2, "w-1").asked(ASLEEP, "shutdown", 3)
    story.shown(ASLEEP, 20, status="off")
    story.permitted(ASLEEP, 21, "w-2").asked(ASLEEP, "create_image", 22)
    story.shown(ASLEEP, 60, status="off").called("hz-eu", "GET /v1/images/900", 60, None, IMAGE)
    protect = "POST /v1/images/900/actions/change_protection"
    story.permitted(ASLEEP, 61, "w-3").called("hz-eu", protect, 62)
    story.shown(ASLEEP, 80, status="off")
    story.permitted(ASLEEP, 81, "w-4").called("hz-eu", "DELETE /v1/servers/48", 82)
    story.entries[-1] = replace(story.entries[-1], resource=ASLEEP)
    story.ended(ASLEEP, "stop", 2, 90, accepted_at=at(4))
    story.called("hz-eu", "GET /v1/images/900", 200, None, IMAGE)
    story.claimed(ASLEEP, "start", 201, "w-5").called("hz-eu", "POST /v1/servers", 202, RECREATED)
    story.called("hz-eu", "GET /v1/servers", 240, None, {"servers": [RECREATED]})
    story.permitted(ASLEEP, 241, "w-6").called("hz-eu", "POST /v1/servers/901/actions/poweron", 242)
    story.sights += [Sight(BEGIN + 60, ASLEEP, 1, 1), Sight(BEGIN + 90, ASLEEP, 0, 1)]
    return story.ended(ASLEEP, "start", 201, 260, accepted_at=at(203))


def rescaled(story: Story) -> Story:
    """A server is moved to a smaller type, which starts it, and back."""
    story.shown(BUILDER, 1, **ON_LARGE)
    story.claimed(BUILDER, "stop", 2, "w-1", saved=PLAN_SAVED)
    story.asked(BUILDER, "shutdown", 3)
    story.shown(BUILDER, 60, **ON_LARGE | {"status": "off"})
    story.permitted(BUILDER, 61, "w-2").asked(BUILDER, "change_type", 62, {"server_type": "cpx12"})
    story.shown(BUILDER, 120, **ON_SMALL)
    story.permitted(BUILDER, 121, "w-3").asked(BUILDER, "shutdown", 122)
    story.shown(BUILDER, 180, **ON_SMALL | {"status": "off"})
    story.ended(BUILDER, "stop", 2, 181, accepted_at=at(4), saved=PLAN_SAVED)
    # A person has started it, so it is shut down before it is moved back.
    story.shown(BUILDER, 300, **ON_SMALL)
    story.claimed(BUILDER, "start", 301, "w-4").asked(BUILDER, "shutdown", 302)
    story.shown(BUILDER, 360, **ON_SMALL | {"status": "off"})
    story.permitted(BUILDER, 361, "w-5").asked(
        BUILDER, "change_type", 362, {"server_type": "cpx32"}
    )
    story.shown(BUILDER, 420, **ON_LARGE)
    story.ended(BUILDER, "start", 301, 421, accepted_at=at(303), saved=PLAN_SAVED)
    return story.recorded(BUILDER, 421, permit=None, saved=None, phase=SETTLED)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_nothing_is_found_where_all_is_well(check: Check) -> None:
    assert found(check, a_night()) == []


# --- Permits --------------------------------------------------------------------------------------


def test_a_request_without_a_permit_is_found() -> None:
    story = Story().recorded(SERVER, 0).asked(SERVER, "shutdown", 1)
    assert "without a permit" in found(checks.every_change_has_a_permit_of_its_own, story)[0]


def test_a_request_after_its_permit_is_found() -> None:
    story = Story().claimed(SERVER, "stop", 0).asked(SERVER, "shutdown", 121)
    assert "without a permit" in found(checks.every_change_has_a_permit_of_its_own, story)[0]


def test_a_request_that_was_refused_needs_a_permit_as_well() -> None:
    story = Story().asked(SERVER, "shutdown", 1, status=423, changed=False)
    assert len(found(checks.every_change_has_a_permit_of_its_own, story)) == 1


def test_two_requests_under_one_permit_are_found() -> None:
    story = Story().claimed(SERVER, "stop", 0)
    story.asked(SERVER, "shutdown", 1).asked(SERVER, "shutdown", 2)
    (words,) = found(checks.every_change_has_a_permit_of_its_own, story)
    assert "under the permit of POST" in words


def test_a_request_in_the_other_direction_is_found() -> None:
    story = Story().claimed(SERVER, "stop", 0).asked(SERVER, "poweron", 1)
    assert "permit to stop" in found(checks.every_change_has_a_permit_of_its_own, story)[0]


# --- What is not to be touched --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        ({"tags": []}, "no schedule names it"),
        ({"tags": ["offhours:off"]}, "it is opted out"),
        ({"tags": ["offhours:rota", "offhours:off"]}, "it is opted out"),
        ({"name": "web-Prod"}, "it is protected"),
        ({"tags": ["offhours:rota", "offhours:soft"]}, "two schedules name it"),
        ({"tags": ["offhours:roda"]}, "no schedule names it"),
        ({"tags": ["offhours:rota", "k8s:c-1"]}, "its kind is not supported"),
        ({"tags": ["offhours:seen"]}, "it is only observed"),
    ],
)
def test_a_request_for_what_is_not_to_be_touched_is_found(shown: dict, why: str) -> None:
    story = Story().configured(rota={}, soft={}, seen={"mode": "observe"})
    story.shown(DROPLET, 0, **shown).claimed(DROPLET, "stop", 1).asked(DROPLET, "power_off", 2)
    (words,) = found(checks.nothing_is_sent_for_what_is_not_to_be_touched, story)
    assert why in words


def test_an_account_that_is_not_configured_is_not_touched() -> None:
    other = "do-lab/droplet/7"
    story = Story().configured(rota={}).shown(other, 0)
    story.claimed(other, "stop", 1).asked(other, "power_off", 2)
    (words,) = found(checks.nothing_is_sent_for_what_is_not_to_be_touched, story)
    assert "account is not configured" in words


def test_an_old_observation_supports_no_permit() -> None:
    story = Story().configured(rota={}).shown(DROPLET, 0)
    story.claimed(DROPLET, "stop", 31).asked(DROPLET, "power_off", 32)
    (words,) = found(checks.nothing_is_sent_for_what_is_not_to_be_touched, story)
    assert "rests on no observation" in words


def test_a_person_may_name_what_no_schedule_does() -> None:
    story = Story().configured(rota={}).shown(DROPLET, 0, tags=[])
    override = {
        "target": {"resource": DROPLET},
        "desired": "stopped",
        "set_at": at(0),
        "ends_at": at(60),
    }
    story.written("schedules", ("override", DROPLET), override, 0)
    story.claimed(DROPLET, "stop", 1).asked(DROPLET, "power_off", 2)
    assert found(checks.nothing_is_sent_for_what_is_not_to_be_touched, story) == []


def test_a_clusters_tag_covers_its_pools() -> None:
    story = Story().configured(rota={}).shown(POOL, 0, tags=["offhours:off"], count=3)
    story.claimed(POOL, "stop", 1).asked(POOL, "scale", 2, {"count": 0})
    assert len(found(checks.nothing_is_sent_for_what_is_not_to_be_touched, story)) == 1


# --- Sizes ----------------------------------------------------------------------------------------


def test_a_shrink_without_a_stored_size_is_found() -> None:
    for reference, shown, body in ((DATABASE, LARGE, SMALL), (POOL, {"count": 3}, {"count": 0})):
        story = Story().shown(reference, 0, **shown).claimed(reference, "stop", 1)
        story.asked(reference, "resize", 2, body)
        (words,) = found(checks.an_original_size_is_stored_before_a_shrink, story)
        assert "no size is stored" in words


def test_a_shrink_that_arrives_when_the_size_is_no_longer_stored_is_found() -> None:
    story = Story().shown(DATABASE, 0, **LARGE).claimed(DATABASE, "stop", 1, saved=SAVED)
    story.recorded(DATABASE, 20, saved=None).asked(DATABASE, "resize", 50, SMALL)
    (words,) = found(checks.an_original_size_is_stored_before_a_shrink, story)
    assert "no size is stored" in words


def test_a_stored_size_smaller_than_what_is_shrunk_is_found() -> None:
    little = SAVED | {"plan": "db-s-2vcpu-4gb"}
    story = Story().shown(DATABASE, 0, **LARGE).claimed(DATABASE, "stop", 1, saved=little)
    story.asked(DATABASE, "resize", 2, SMALL)
    (words,) = found(checks.an_original_size_is_stored_before_a_shrink, story)
    assert "only 1 x db-s-2vcpu-4gb" in words


def test_a_stored_size_with_less_storage_is_found() -> None:
    little = SAVED | {"storage_mib": 61440}
    story = Story().shown(DATABASE, 0, **LARGE).claimed(DATABASE, "stop", 1, saved=little)
    story.asked(DATABASE, "resize", 2, SMALL)
    assert len(found(checks.an_original_size_is_stored_before_a_shrink, story)) == 1


def test_an_autoscaler_is_part_of_what_is_stored() -> None:
    story = Story().shown(POOL, 0, count=3, auto_scale=True, min_nodes=1, max_nodes=4)
    story.claimed(POOL, "stop", 1, saved=POOL_SAVED).asked(POOL, "scale", 2, {"count": 0})
    (words,) = found(checks.an_original_size_is_stored_before_a_shrink, story)
    assert "autoscaled 1-4" in words


def test_a_start_that_makes_something_smaller_is_found() -> None:
    story = Story().shown(POOL, 0, count=5).claimed(POOL, "start", 1, saved=POOL_SAVED)
    story.asked(POOL, "scale", 2, {"count": 3})
    (words,) = found(checks.an_original_size_is_stored_before_a_shrink, story)
    assert "was to start it" in words


def shrunk() -> Story:
    """A database that was shrunk."""
    story = Story().shown(DATABASE, 0, **LARGE).claimed(DATABASE, "stop", 1, saved=SAVED)
    return story.asked(DATABASE, "resize", 2, SMALL).recorded(DATABASE, 3, permit=None)


def test_a_size_that_is_cleared_before_it_was_put_back_is_found() -> None:
    story = shrunk().shown(DATABASE, 50, **SMALL).recorded(DATABASE, 60, saved=None)
    (words,) = found(checks.a_stored_size_is_kept_until_it_is_put_back, story)
    assert "was not put back" in words


def test_an_observation_before_the_shrink_shows_no_restoration() -> None:
    story = shrunk().recorded(DATABASE, 60, saved=None)
    assert len(found(checks.a_stored_size_is_kept_until_it_is_put_back, story)) == 1


def test_a_machine_that_is_moved_without_its_plan_stored_is_found() -> None:
    story = Story().shown(BUILDER, 1, **ON_LARGE).claimed(BUILDER, "stop", 2)
    story.asked(BUILDER, "change_type", 3, {"server_type": "cpx12"})
    (words,) = found(checks.an_original_size_is_stored_before_a_shrink, story)
    assert "no size is stored" in words


def test_a_machine_that_stays_on_its_smaller_plan_is_found() -> None:
    story = Story().shown(BUILDER, 1, **ON_LARGE).claimed(BUILDER, "stop", 2, saved=PLAN_SAVED)
    story.asked(BUILDER, "change_type", 3, {"server_type": "cpx12"})
    story.shown(BUILDER, 60, **ON_SMALL).recorded(BUILDER, 61, saved=None)
    (words,) = found(checks.a_stored_size_is_kept_until_it_is_put_back, story)
    assert "was not put back" in words
    state = {"status": "running", "server_type": "cpx12"}
    (owed,) = at_the_end(SERVER, ALWAYS, state, saved=PLAN_SAVED)
    assert owed == "should be running, and is running, cpx12, owed cpx32"


def test_a_size_that_is_replaced_by_a_smaller_one_is_found() -> None:
    little = SAVED | {"plan": "db-s-1vcpu-1gb"}
    story = shrunk().recorded(DATABASE, 60, saved=little)
    (words,) = found(checks.a_stored_size_is_kept_until_it_is_put_back, story)
    assert "was replaced by 1 x db-s-1vcpu-1gb" in words


def test_a_deleted_record_loses_its_size() -> None:
    story = shrunk()
    story.written("resources", ("do-main", "database/d-1"), None, 60)
    assert len(found(checks.a_stored_size_is_kept_until_it_is_put_back, story)) == 1
    story.ended(DATABASE, "start", 60, 60, ending="forgotten", saved=SAVED)
    assert found(checks.a_stored_size_is_kept_until_it_is_put_back, story) == []


def test_a_size_may_be_replaced_where_nothing_was_shrunk() -> None:
    story = Story().shown(DATABASE, 0, **LARGE).claimed(DATABASE, "stop", 1, saved=SAVED)
    story.asked(DATABASE, "resize", 2, SMALL, status=429, changed=False)
    story.recorded(DATABASE, 60, saved=SAVED | {"plan": "db-s-2vcpu-4gb"})
    story.recorded(DATABASE, 90, saved=None)
    assert found(checks.a_stored_size_is_kept_until_it_is_put_back, story) == []


def test_an_autoscaled_pool_is_put_back_within_its_bounds() -> None:
    bounds = {"auto_scale": True, "min_nodes": 1, "max_nodes": 4}
    saved = {"count": 3, "autoscale": {"min": 1, "max": 4}}
    story = Story().shown(POOL, 0, count=3, **bounds).claimed(POOL, "stop", 1, saved=saved)
    story.asked(POOL, "scale", 2, {"count": 0})
    for shown, violations in (({"count": 2}, 1), ({"count": 2} | bounds, 0)):
        story.shown(POOL, 50, **shown)
        story.recorded(POOL, 60, saved=None)
        check = checks.a_stored_size_is_kept_until_it_is_put_back
        assert len(found(check, story)) == violations


# --- Requests -------------------------------------------------------------------------------------


def test_a_request_that_is_accepted_twice_for_one_transition_is_found() -> None:
    story = Story().claimed(SERVER, "stop", 0).asked(SERVER, "shutdown", 1)
    story.permitted(SERVER, 130, "w-2").asked(SERVER, "shutdown", 131)
    (words,) = found(checks.no_request_is_repeated_for_one_transition, story)
    assert "repeats POST" in words


def test_a_machine_that_was_moved_is_switched_off_once_more_and_not_twice() -> None:
    check = checks.no_request_is_repeated_for_one_transition
    story = rescaled(Story())
    assert found(check, story) == []
    story.claimed(BUILDER, "stop", 500, saved=PLAN_SAVED).asked(BUILDER, "shutdown", 501)
    story.permitted(BUILDER, 561, "w-6").asked(BUILDER, "shutdown", 562)
    assert len(found(check, story)) == 1


def test_a_machine_that_keeps_its_plan_is_switched_on_by_no_stop() -> None:
    story = Story().claimed(DROPLET, "stop", 0).asked(DROPLET, "power_on", 1)
    assert len(found(checks.every_change_has_a_permit_of_its_own, story)) == 1


def test_a_request_may_be_repeated_where_it_was_not_accepted() -> None:
    story = Story().claimed(SERVER, "stop", 0)
    story.asked(SERVER, "shutdown", 1, status=423, changed=False)
    story.permitted(SERVER, 60, "w-2").asked(SERVER, "shutdown", 61)
    assert found(checks.no_request_is_repeated_for_one_transition, story) == []


@pytest.mark.parametrize(("after", "violations"), [(59.9, 1), (60.1, 0)])
def test_a_cut_within_the_grace_is_found(after: float, violations: int) -> None:
    story = Story().configured(rota={}).claimed(SERVER, "stop", 0).asked(SERVER, "shutdown", 1)
    story.permitted(SERVER, after, "w-2").asked(SERVER, "poweroff", 1 + after)
    assert len(found(checks.power_is_cut_only_after_the_grace, story)) == violations


def test_a_cut_without_a_shutdown_is_found() -> None:
    story = Story().configured(rota={}).claimed(SERVER, "stop", 0).asked(SERVER, "poweroff", 1)
    (words,) = found(checks.power_is_cut_only_after_the_grace, story)
    assert "its guest was not asked" in words


def test_a_shutdown_of_an_earlier_transition_allows_no_cut() -> None:
    story = Story().configured(rota={}).claimed(SERVER, "stop", 0).asked(SERVER, "shutdown", 1)
    story.claimed(SERVER, "stop", 200, "w-2").asked(SERVER, "poweroff", 201)
    assert len(found(checks.power_is_cut_only_after_the_grace, story)) == 1


def test_a_cut_that_the_schedule_forbids_is_found() -> None:
    story = Story().configured(rota={"force": False})
    story.claimed(SERVER, "stop", 0).asked(SERVER, "shutdown", 1)
    story.permitted(SERVER, 70, "w-2").asked(SERVER, "poweroff", 71)
    (words,) = found(checks.power_is_cut_only_after_the_grace, story)
    assert "force = false" in words


@pytest.mark.parametrize(("policy", "violations"), [({}, 0), ({"graceful": True}, 1)])
def test_a_droplets_stop_is_a_cut_unless_it_is_graceful(policy: dict, violations: int) -> None:
    story = Story().configured(rota=policy)
    story.claimed(DROPLET, "stop", 0).asked(DROPLET, "power_off", 1)
    assert len(found(checks.power_is_cut_only_after_the_grace, story)) == violations


@pytest.mark.parametrize(("faulty", "violations"), [(True, 0), (False, 1)])
def test_a_rate_limit_that_we_exceeded_is_found(faulty: bool, violations: int) -> None:
    story = Story().asked(SERVER, "shutdown", 1, status=429, changed=False, faulty=faulty)
    assert len(found(checks.the_rate_limit_is_never_exceeded, story)) == violations


# --- Tables ---------------------------------------------------------------------------------------


def test_transitions_that_overlap_are_found() -> None:
    story = Story().ended(SERVER, "stop", 0, 60).ended(SERVER, "start", 59, 90)
    (words,) = found(checks.history_does_not_overlap, story)
    assert words.startswith("the start claimed at")
    story = Story().ended(SERVER, "stop", 0, 60).ended(SERVER, "start", 60, 90)
    assert found(checks.history_does_not_overlap, story) == []


def test_history_without_its_change_is_found() -> None:
    story = Story().ended(SERVER, "stop", 0, 60, accepted_at=at(2), forced=True)
    missing, uncut = found(checks.history_is_in_the_log, story)
    assert "no change for the stop" in missing
    assert "no cut" in uncut
    story.asked(SERVER, "poweron", 1)
    assert len(found(checks.history_is_in_the_log, story)) == 2
    story.asked(SERVER, "shutdown", 2).asked(SERVER, "poweroff", 3)
    assert found(checks.history_is_in_the_log, story) == []


def test_a_persons_act_may_pass_for_ours() -> None:
    story = Story().ended(SERVER, "stop", 0, 60, accepted_at=at(2))
    story.acts.append((BEGIN + 1, SERVER))
    assert found(checks.history_is_in_the_log, story) == []


@pytest.mark.parametrize("revision", [1, 3])
def test_a_revision_that_does_not_follow_is_found(revision: int) -> None:
    story = Story().recorded(SERVER, 0).recorded(SERVER, 1, revision=revision)
    assert len(found(checks.revisions_grow_by_one, story)) == 1


def test_a_record_may_begin_anew_after_it_was_deleted() -> None:
    story = Story().recorded(SERVER, 0).recorded(SERVER, 1)
    story.written("resources", ("hz-eu", "server/41"), None, 2)
    story.recorded(SERVER, 3, revision=1)
    assert found(checks.revisions_grow_by_one, story) == []


@pytest.mark.parametrize("table", ["schedules", "accounts", "resources", "history"])
def test_a_token_in_any_item_is_found(table: str) -> None:
    item = {"reason": {"words": ["Bearer simulated-do-token"]}}
    story = Story().written(table, ("a", "b"), item, 0)
    if table == "history":
        item["reference"], item["claimed_at"], item["finished_at"] = SERVER, at(0), at(0)
    assert len(found(checks.no_item_has_a_token, story)) == 1


def test_what_was_read_only_in_part_is_not_judged_yet() -> None:
    story = Story().asked(SERVER, "shutdown", 5)
    assert found(checks.every_change_has_a_permit_of_its_own, story, until=4) == []


# --- The end --------------------------------------------------------------------------------------

ALWAYS = {"schedule": {"start": "* * * * *"}}
NEVER = {"schedule": {"stop": "* * * * *"}}
CLOUD = {
    SERVER: {"name": "ci-1", "labels": {"offhours": "rota"}, "server_type": "cpx32"},
    DATABASE: {"name": "orders", "tags": ["offhours:rota"], "status": "online", "engine": "pg"},
    POOL: {"name": "workers", "tags": ["offhours:rota"], "autoscale": None},
}


def at_the_end(reference: str, rule: dict, state: dict, **record: object) -> list[str]:
    story = Story().configured(rota=rule).recorded(reference, 0, **{"phase": SETTLED} | record)
    whole = CLOUD[reference] | state | {"cluster": {"name": "staging", "tags": []}}
    story.resources[reference] = whole
    return found(FINAL[0], story)


def database_of(size: dict) -> dict:
    storage = size["storage_size_mib"]
    return {"plan": size["size"], "nodes": size["num_nodes"], "storage_mib": storage}


def test_what_is_where_it_should_be_is_well() -> None:
    assert at_the_end(SERVER, ALWAYS, {"status": "running"}) == []
    assert at_the_end(SERVER, NEVER, {"status": "off"}) == []
    assert at_the_end(DATABASE, ALWAYS, database_of(LARGE)) == []
    assert at_the_end(DATABASE, NEVER, database_of(SMALL), saved=SAVED) == []
    assert at_the_end(POOL, ALWAYS, {"count": 3}) == []
    assert at_the_end(POOL, NEVER, {"count": 0}, saved=POOL_SAVED) == []


def test_what_is_elsewhere_at_the_end_is_found() -> None:
    (off,) = at_the_end(SERVER, ALWAYS, {"status": "off"})
    assert off == "should be running, and is off, cpx32"
    assert len(at_the_end(SERVER, NEVER, {"status": "running"})) == 1
    (owed,) = at_the_end(DATABASE, ALWAYS, database_of(SMALL), saved=SAVED)
    assert "owed 1 x db-s-4vcpu-8gb" in owed
    assert len(at_the_end(DATABASE, NEVER, database_of(LARGE), saved=SAVED)) == 1
    assert len(at_the_end(DATABASE, NEVER, database_of(LARGE))) == 1
    assert len(at_the_end(POOL, ALWAYS, {"count": 0}, saved=POOL_SAVED)) == 1
    assert len(at_the_end(POOL, ALWAYS, {"count": 1}, saved=POOL_SAVED)) == 1
    assert len(at_the_end(POOL, NEVER, {"count": 3})) == 1


def test_what_follows_a_schedule_without_a_record_is_found() -> None:
    story = Story().configured(rota=ALWAYS)
    story.resources[SERVER] = CLOUD[SERVER] | {"status": "running"}
    assert found(FINAL[0], story) == ["follows rota, and has no record"]


def test_what_says_why_it_is_elsewhere_is_well() -> None:
    elsewhere = {"status": "off"}
    stuck = {"name": "stuck", "reason": "not seen within 10 minutes"}
    assert at_the_end(SERVER, ALWAYS, elsewhere, phase=stuck) == []
    assert at_the_end(SERVER, ALWAYS, elsewhere, phase={"name": "stuck"}) != []
    assert at_the_end(SERVER, ALWAYS, elsewhere, held=True) == []
    assert at_the_end(SERVER, ALWAYS, elsewhere, request={"problem": "no capacity"}) == []
    smallest = {"ending": "already-there"}
    assert at_the_end(DATABASE, NEVER, database_of(SMALL), last=smallest) == []
    assert at_the_end(SERVER, NEVER, {"status": "running"}, last=smallest) != []


def test_what_follows_nothing_may_be_anywhere() -> None:
    assert at_the_end(SERVER, ALWAYS, {"status": "off", "labels": {"offhours": "off"}}) == []
    assert at_the_end(SERVER, ALWAYS | {"mode": "observe"}, {"status": "off"}) == []


# --- Hibernation ----------------------------------------------------------------------------------


def test_a_request_to_a_recreated_machine_needs_a_permit_of_the_original() -> None:
    story = hibernated(Story().configured(rota={}))
    story.called("hz-eu", "POST /v1/servers/901/actions/shutdown", 500)
    (words,) = found(checks.every_change_has_a_permit_of_its_own, story)
    assert "without a permit" in words


def test_a_second_creation_in_one_start_is_found() -> None:
    story = hibernated(Story().configured(rota={}))
    story.permitted(ASLEEP, 243, "w-7").called("hz-eu", "POST /v1/servers", 244, RECREATED)
    (words,) = found(checks.no_request_is_repeated_for_one_transition, story)
    assert "POST /v1/servers (entry" in words


def test_the_label_of_a_snapshots_machine_is_judged() -> None:
    story = Story().configured(rota={}).shown(ASLEEP, 0, labels={"offhours": "off"})
    story.called("hz-eu", "GET /v1/images/900", 40, None, IMAGE)
    story.claimed(ASLEEP, "start", 41).called("hz-eu", "POST /v1/servers", 42, RECREATED)
    (words,) = found(checks.nothing_is_sent_for_what_is_not_to_be_touched, story)
    assert "it is opted out" in words


@pytest.mark.parametrize(
    ("machines", "snapshots", "why"),
    [(0, 0, "no complete snapshot"), (2, 1, "exists 2 times")],
)
def test_a_machine_that_is_lost_or_twofold_is_found(
    machines: int, snapshots: int, why: str
) -> None:
    story = Story()
    story.sights.append(Sight(BEGIN, ASLEEP, machines, snapshots))
    (words,) = found(checks.a_machine_or_its_snapshot_exists, story)
    assert why in words


def hibernated_at_the_end(rule: dict, machines: int = 0, **record: object) -> list[str]:
    story = Story().configured(rota=rule).shown(ASLEEP, 0)
    story.recorded(ASLEEP, 0, **{"phase": SETTLED} | record)
    story.sights += [Sight(BEGIN, ASLEEP, 0, 1), Sight(BEGIN + 9, ASLEEP, machines, 1)]
    return found(FINAL[1], story)


def test_what_is_hibernated_at_the_end_should_be_stopped() -> None:
    assert hibernated_at_the_end(NEVER) == []
    assert hibernated_at_the_end(ALWAYS) == ["should be running, and is hibernated"]
    assert hibernated_at_the_end(ALWAYS, machines=1) == []
    assert hibernated_at_the_end(ALWAYS, request={"problem": "no capacity"}) == []
