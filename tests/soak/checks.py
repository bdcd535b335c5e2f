"""Invariants that hold whatever the clouds and people do. Each check reads only the evidence."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .evidence import Entry, Evidence, Look, Version, instant
from .kinds import CUTS, STOP, Kind, Size, kind_of
from .rules import RUNNING, Rules

GRACE = 60.0
"""Seconds that a guest has between its accepted shutdown and a cut of its power."""


@dataclass(frozen=True)
class Violation:
    """A violated invariant."""

    check: str
    at: float
    subject: str
    words: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.words} ({self.check})"


Found = Iterator[tuple[float, str, str]]
"""Each violation: its time, its subject, and why it is one."""
Check = Callable[[Evidence], Found]


def every_change_has_a_permit_of_its_own(evidence: Evidence) -> Found:
    """A request needs a preceding write that permits exactly this request."""
    used: dict[tuple[str, str, float], Entry] = {}
    for entry in evidence.changes():
        permit = evidence.permit_of(entry)
        reference = entry.resource or entry.path
        if permit is None:
            yield entry.at, reference, f"{entry} left without a permit"
            continue
        direction = kind_of(reference).direction(entry, permit.version.get("saved"))
        under_way = permit.version.direction
        if direction and direction != under_way:
            yield entry.at, reference, f"{entry} left under a permit to {under_way}"
        before = used.setdefault((reference, permit.writer, permit.at), entry)
        if before is not entry:
            yield entry.at, reference, f"{entry} left under the permit of {before}"


def nothing_is_sent_for_what_is_not_to_be_touched(evidence: Evidence) -> Found:
    """A permit rests on an observation that shows the resource opted in and nothing against it."""
    by_generation: dict[int, Rules] = {}
    for entry in evidence.changes():
        permit = evidence.permit_of(entry)
        if permit is None:
            continue
        looks = evidence.looks_behind(entry.resource, permit)
        if not looks:
            yield entry.at, entry.resource, f"{entry} rests on no observation"
            continue
        generation = permit.version.get("handled", "generation") or 0
        if generation not in by_generation:
            by_generation[generation] = Rules.of_generation(evidence, generation)
        rules, now = by_generation[generation], Rules.in_force(evidence, permit.at)
        why = [_forbidding(rules, now, permit.version, look) for look in looks]
        if all(why):
            yield entry.at, entry.resource, f"{entry} left though {why[-1]}"


def _forbidding(rules: Rules, now: Rules, record: Version, look: Look) -> str | None:
    reference = record.reference
    if why := rules.why_forbidden(reference, look):
        return why
    schedule = rules.schedule_of(reference, look)
    named = now.named_by_person(reference) or record.get("manual_command") is not None
    if schedule is None and not named:
        return "no schedule names it"
    return "it is only observed" if rules.observes(reference, schedule) else None


def an_original_size_is_stored_before_a_shrink(evidence: Evidence) -> Found:
    """When a cloud accepts a shrink, the record holds the size from before it."""
    for entry, kind, target in _sized_changes(evidence):
        permit = evidence.permit_of(entry)
        record = evidence.record_at(entry.resource, entry.at)
        if permit is None or record is None:
            continue
        seen = [look.size for look in evidence.looks_behind(entry.resource, permit)]
        saved = kind.saved(record.get("saved"))
        if any(size.survives(target) for size in seen):
            continue
        if saved is None:
            yield entry.at, entry.resource, f"{entry} shrinks it, and no size is stored"
        elif permit.version.direction != STOP:
            yield entry.at, entry.resource, f"{entry} makes it smaller, and was to start it"
        elif seen and not any(saved.covers(size) for size in seen):
            words = f"{entry} shrinks {_listed(seen)}, and only {saved} is stored"
            yield entry.at, entry.resource, words


def a_stored_size_is_kept_until_it_is_put_back(evidence: Evidence) -> Found:
    """A stored size is neither cleared nor reduced while our own shrink may be in effect."""
    shrinks = _shrinks(evidence)
    for reference, versions in evidence.records.items():
        kind = kind_of(reference)
        since = 0.0
        for before, after in pairwise(versions):
            had, has = (kind.saved(one.get("saved")) for one in (before, after))
            since = since if kind.saved(before.get("saved")) else after.at
            if had is None or (has is not None and has.covers(had)):
                continue
            ours = [at for at in shrinks[reference] if since <= at <= after.at]
            if not ours or _in_history(evidence, reference, kind, had):
                continue
            looks = [one for one in evidence.looks.get(reference, []) if one.at <= after.at]
            if has is not None:
                words = f"the stored size {had} was replaced by {has}"
                yield after.at, reference, words
            elif not any(one.size.restores(had) for one in looks if one.at > ours[-1]):
                yield after.at, reference, f"{had} is no longer stored, and was not put back"


def _sized_changes(evidence: Evidence) -> Iterator[tuple[Entry, Kind, Size]]:
    for entry in evidence.accepted():
        kind = kind_of(entry.resource)
        target = kind.leads_to(entry)
        if target is not None:
            yield entry, kind, target


def _shrinks(evidence: Evidence) -> defaultdict[str, list[float]]:
    """Returns when a cloud accepted shrinks, by resource."""
    found = defaultdict(list)
    for entry, _, target in _sized_changes(evidence):
        looks = [one for one in evidence.looks.get(entry.resource, []) if one.at <= entry.at]
        if looks and not looks[-1].size.survives(target):
            found[entry.resource].append(entry.at)
    return found


def _in_history(evidence: Evidence, reference: str, kind: Kind, size: Size) -> bool:
    """Reports whether history has a size as one that the record no longer keeps."""
    endings = ("resized", "gone", "forgotten")
    items = (one for one in evidence.history.get(reference, []) if one["ending"] in endings)
    return any(kind.saved(one.get("saved")) == size for one in items)


def _listed(sizes: Iterable[Size]) -> str:
    return " or ".join(sorted({str(size) for size in sizes}))


def no_request_is_repeated_for_one_transition(evidence: Evidence) -> Found:
    """A cloud accepts each kind of request once per transition; a machine that was moved to
    another plan may be switched off or on once more.
    """
    accepted: defaultdict[tuple[str, str], dict[str, Entry]] = defaultdict(dict)
    for entry in evidence.accepted():
        permit = evidence.permit_of(entry)
        claimed_at = permit and permit.version.get("phase", "transition", "claimed_at")
        if claimed_at is None:
            continue
        kind, so_far = kind_of(entry.resource), accepted[entry.resource, claimed_at]
        verb = kind.verb(entry)
        before = so_far.setdefault(verb, entry)
        if before is not entry:
            yield entry.at, entry.resource, f"{entry} repeats {before} for one transition"
        if kind.leads_to(entry) is not None:
            accepted[entry.resource, claimed_at] = {verb: entry}


def power_is_cut_only_after_the_grace(evidence: Evidence) -> Found:
    """A guest that is asked to shut down has a minute; with `force = false` its power stays on."""
    shutdowns: defaultdict[str, list[float]] = defaultdict(list)
    for entry in evidence.accepted():
        verb = kind_of(entry.resource).verb(entry)
        if verb == "shutdown":
            shutdowns[entry.resource].append(entry.at)
        permit = evidence.permit_of(entry)
        if verb not in CUTS or permit is None:
            continue
        transition = permit.version.get("phase", "transition") or {}
        generation = permit.version.get("handled", "generation") or 0
        policy = Rules.of_generation(evidence, generation).policy(transition.get("schedule"))
        if "/droplet/" in entry.resource and not policy.get("graceful"):
            continue
        if policy.get("force") is False:
            yield entry.at, entry.resource, f"{entry} cut its power, and force = false"
        claimed_at = instant(transition["claimed_at"]) if transition else 0.0
        asked = [at for at in shutdowns[entry.resource] if at >= claimed_at]
        if not asked:
            yield entry.at, entry.resource, f"{entry} cut its power, and its guest was not asked"
        elif entry.at - asked[-1] < GRACE:
            after = f"{entry.at - asked[-1]:.1f} s after the shutdown"
            yield entry.at, entry.resource, f"{entry} cut its power {after}"


def history_does_not_overlap(evidence: Evidence) -> Found:
    """A resource has one transition at a time."""
    for reference, items in evidence.history.items():
        for before, after in pairwise(items):
            if instant(after["claimed_at"]) < instant(before["finished_at"]):
                words = (
                    f"the {after['direction']} claimed at {after['claimed_at']} overlaps the "
                    f"{before['direction']} that ended at {before['finished_at']}"
                )
                yield instant(after["claimed_at"]), reference, words


def history_is_in_the_log(evidence: Evidence) -> Found:
    """A cloud accepted what history calls accepted or forced."""
    accepted: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in evidence.accepted():
        accepted[entry.resource].append(entry)
    for reference, items in evidence.history.items():
        for item in items:
            yield from _missing_in_log(evidence, reference, item, accepted[reference])


def _missing_in_log(
    evidence: Evidence, reference: str, item: dict[str, Any], entries: list[Entry]
) -> Found:
    kind = kind_of(reference)
    begin, end = instant(item["claimed_at"]), instant(item["finished_at"])
    within = [one for one in entries if begin <= one.at <= end]
    directions = (item["direction"], None)
    fitting = [one for one in within if kind.direction(one, item.get("saved")) in directions]
    # A person's own request may pass for one of ours whose response was lost.
    if evidence.acted_on(reference, begin, end):
        return
    if item.get("accepted_at") and not fitting:
        words = f"the log has no change for the {item['direction']} claimed at {item['claimed_at']}"
        yield end, reference, words
    if item["forced"] and not any(kind.verb(one) in CUTS for one in fitting):
        yield end, reference, f"the log has no cut for the stop claimed at {item['claimed_at']}"


def the_rate_limit_is_never_exceeded(evidence: Evidence) -> Found:
    """No cloud answers that there were too many requests, except through a fault."""
    for entry in evidence.entries:
        if entry.status == 429 and not entry.faulty and entry.at <= evidence.until:
            yield entry.at, entry.account or "?", f"{entry} exceeded the rate limit"


def revisions_grow_by_one(evidence: Evidence) -> Found:
    """Every write replaces the one right before it."""
    for reference, versions in evidence.records.items():
        for before, after in pairwise(versions):
            last, now = (one.get("revision") or 0 for one in (before, after))
            if after.item is not None and now != last + 1:
                yield after.at, reference, f"revision {now} was written over revision {last}"


def no_item_has_a_token(evidence: Evidence) -> Found:
    """Items name the place of a token and never contain it."""
    for table, versions in evidence.versions.items():
        for version in versions:
            text = json.dumps(version.item)
            if any(secret in text for secret in evidence.secrets):
                yield version.at, f"{table} {version.reference}", "an item has a token in it"


def a_machine_or_its_snapshot_exists(evidence: Evidence) -> Found:
    """A machine that is hibernated exists once, or not at all while it has a complete snapshot."""
    for sight in evidence.sights:
        if sight.machines > 1:
            yield sight.at, sight.reference, f"exists {sight.machines} times"
        elif not sight.machines and not sight.snapshots:
            yield sight.at, sight.reference, "was deleted, and has no complete snapshot"


CHECKS: tuple[Check, ...] = (
    every_change_has_a_permit_of_its_own,
    nothing_is_sent_for_what_is_not_to_be_touched,
    an_original_size_is_stored_before_a_shrink,
    a_stored_size_is_kept_until_it_is_put_back,
    no_request_is_repeated_for_one_transition,
    power_is_cut_only_after_the_grace,
    history_does_not_overlap,
    history_is_in_the_log,
    the_rate_limit_is_never_exceeded,
    revisions_grow_by_one,
    no_item_has_a_token,
    a_machine_or_its_snapshot_exists,
)
"""The checks that hold at any instant."""


def at_the_end_all_is_where_it_should_be(evidence: Evidence) -> Found:
    """After a calm, what follows a schedule is in its desired state, or its record says why not."""
    rules = Rules.in_force(evidence, evidence.until)
    for reference, state in evidence.resources.items():
        kind = kind_of(reference)
        look = kind.state(state)
        schedule = rules.schedule_of(reference, look)
        if schedule is None or rules.observes(reference, schedule):
            continue
        record = evidence.record_at(reference, evidence.until)
        if record is None:
            yield evidence.until, reference, f"follows {schedule}, and has no record"
            continue
        desired = rules.desired(reference, schedule, evidence.until)
        wrong = desired and _wrong(kind, look, record, desired)
        if wrong and _reason(record) is None:
            yield evidence.until, reference, f"should be {desired}, and {wrong}"


def at_the_end_only_what_is_stopped_is_hibernated(evidence: Evidence) -> Found:
    """A machine that exists is where it should be; one that does not is to be stopped."""
    rules = Rules.in_force(evidence, evidence.until)
    last = {sight.reference: sight for sight in evidence.sights}
    for reference in (name for name, sight in last.items() if not sight.machines):
        looks = evidence.looks.get(reference)
        schedule = looks and rules.schedule_of(reference, looks[-1])
        if not schedule or rules.desired(reference, schedule, evidence.until) != RUNNING:
            continue
        record = evidence.record_at(reference, evidence.until)
        if record is None or _reason(record) is None:
            yield evidence.until, reference, "should be running, and is hibernated"


def _wrong(kind: Kind, look: Look, record: Version, desired: str) -> str | None:
    """Returns why something is not in the desired state; None if it is."""
    saved = kind.saved(record.get("saved"))
    shown = f"is {look.status}" if look.size is None else f"is {look.status}, {look.size}"
    if desired != RUNNING:
        return None if kind.is_stopped(look, saved) else shown
    if not kind.is_running(look):
        return shown
    if saved is not None and not look.size.restores(saved):
        return f"{shown}, owed {saved}"
    return None


def _reason(record: Version) -> str | None:
    """Returns why something needs a person, according to its record."""
    if record.get("phase", "name") in ("stuck", "refused"):
        return record.get("phase", "reason")
    if record.get("held"):
        return "held"
    if record.get("phase", "name") == "gone":
        return "gone"
    return record.get("request", "problem") or _nothing_to_shrink_to(record)


def _nothing_to_shrink_to(record: Version) -> str | None:
    """A database on its smallest plan counts as stopped, unchanged."""
    smallest = record.get("last", "ending") == "already-there"
    return "already at its smallest" if smallest and "/database/" in record.reference else None


FINAL: tuple[Check, ...] = (
    at_the_end_all_is_where_it_should_be,
    at_the_end_only_what_is_stopped_is_hibernated,
)
"""The checks that hold after a calm."""


def run(checks: Iterable[Check], evidence: Evidence) -> Iterator[Violation]:
    """Yields all violations that these checks find."""
    for check in checks:
        name = check.__name__.replace("_", " ")
        for at, subject, words in check(evidence):
            yield Violation(name, at, subject, words)
