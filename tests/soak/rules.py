"""A second opinion on what the configuration in the tables allows to be touched, and desires.

It understands only as much of schedules as the scenario writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatch
from typing import Any

from .evidence import Evidence, Look, Version, instant

RUNNING, STOPPED = "running", "stopped"
FARTHEST = 48 * 60
"""Minutes to look back for the last firing of a cron expression."""


@dataclass(frozen=True)
class Override:
    """A state that a person desired for a time."""

    target: str
    """A reference, or `schedule NAME`."""
    desired: str
    set_at: float
    ends_at: float

    @classmethod
    def of(cls, item: dict[str, Any]) -> Override:
        """Parses an override as stored."""
        ((kind, name),) = item["target"].items()
        target = name if kind == "resource" else f"schedule {name}"
        return cls(target, item["desired"], instant(item["set_at"]), instant(item["ends_at"]))


@dataclass(frozen=True)
class Rules:
    """One generation of the configuration and the overrides."""

    settings: dict[str, Any]
    schedules: dict[str, dict[str, Any]]
    accounts: dict[str, dict[str, Any]]
    overrides: tuple[Override, ...] = ()

    @classmethod
    def in_force(cls, evidence: Evidence, at: float) -> Rules:
        """Returns what was in force at an instant."""
        latest = _latest(evidence, "schedules", at) | _latest(evidence, "accounts", at)
        head = latest.get(("head", "head"), {})
        return cls._of(latest, head.get("generation", 0))

    @classmethod
    def of_generation(cls, evidence: Evidence, generation: int) -> Rules:
        """Returns what one generation says, whenever it was in force."""
        until = evidence.until
        latest = _latest(evidence, "schedules", until) | _latest(evidence, "accounts", until)
        return cls._of(latest, generation)

    @classmethod
    def _of(cls, latest: dict[tuple[str, str], dict[str, Any]], generation: int) -> Rules:
        wanted = f"generation#{generation:012}"
        settings: dict[str, Any] = {}
        schedules, accounts, overrides = {}, {}, []
        for (partition, name), item in latest.items():
            if partition == wanted and "schedule" in item["body"]:
                schedules[item["body"]["schedule"]["schedule"]] = item["body"]["schedule"]["rule"]
            elif partition == wanted and "settings" in item["body"]:
                settings = item["body"]["settings"]
            elif partition == wanted:
                accounts[name] = item["body"]
            elif partition == "override":
                overrides.append(Override.of(item))
        return cls(settings, schedules, accounts, tuple(overrides))

    def why_forbidden(self, reference: str, look: Look) -> str | None:
        """Returns why a resource must never be touched; None if it may be."""
        cluster_name, cluster_tags = look.cluster
        names, tags = (look.name, cluster_name), look.tags | cluster_tags
        if reference.split("/")[0] not in self.accounts:
            return "its account is not configured"
        protecting = self.settings.get("protect", [])
        if any(_covers(pattern, reference, names, tags) for pattern in protecting):
            return "it is protected"
        if "off" in _words(tags):
            return "it is opted out"
        if not look.supported:
            return "its kind is not supported"
        if len(self._naming(reference, look)) > 1:
            return "two schedules name it"
        return None

    def schedule_of(self, reference: str, look: Look) -> str | None:
        """Returns the schedule that a resource follows."""
        if self.why_forbidden(reference, look):
            return None
        return next(
            (name for name in self._naming(reference, look) if name in self.schedules), None
        )

    def _naming(self, reference: str, look: Look) -> set[str]:
        """Returns what names it on the strongest level that names it at all."""
        listed = {
            name
            for name, rule in self.schedules.items()
            if reference in (rule.get("resources") or [])
        }
        return listed or _words(look.tags) or _words(look.cluster[1])

    def policy(self, schedule: str | None) -> dict[str, Any]:
        """Returns the keys of a schedule, including its times."""
        return self.schedules.get(schedule or "", {})

    def observes(self, reference: str, schedule: str | None) -> bool:
        """Reports whether a resource is only observed, and nothing may be sent for it."""
        account = self.accounts.get(reference.split("/")[0], {})
        modes = (source.get("mode") for source in (self.settings, account, self.policy(schedule)))
        return "observe" in modes

    def desired(self, reference: str, schedule: str, at: float) -> str | None:
        """Returns the desired state of a resource at an instant; None if either will do."""
        for target in (reference, f"schedule {schedule}"):
            for one in self.overrides:
                if one.target == target and one.set_at <= at < one.ends_at:
                    return one.desired
        return scheduled(self.schedules[schedule]["schedule"], at)

    def named_by_person(self, reference: str) -> bool:
        """Reports whether an override names this very resource."""
        return any(one.target == reference for one in self.overrides)


def _latest(evidence: Evidence, table: str, at: float) -> dict[tuple[str, str], dict[str, Any]]:
    latest: dict[tuple[str, str], Version] = {}
    for version in evidence.versions.get(table, []):
        if version.at <= at:
            latest[version.key] = version
    return {key: version.item for key, version in latest.items() if version.item}


def _words(tags: Iterable[str]) -> set[str]:
    """Returns each WORD of `offhours:WORD` and `offhours=WORD`."""
    words = set()
    for tag in tags:
        for separator in ":=":
            key, found, word = tag.partition(separator)
            if found and key.lower() == "offhours":
                words.add(word.strip().lower())
    return words


def _covers(pattern: str, reference: str, names: Iterable[str], tags: Iterable[str]) -> bool:
    subject, found, glob = pattern.partition(":")
    texts = {"name": names, "tag": tags}.get(subject) if found else [reference]
    glob = glob if found else pattern
    return any(fnmatch(text.lower(), glob.lower()) for text in texts or [])


def scheduled(definition: dict[str, Any], at: float) -> str | None:
    """Returns what a schedule's own times desire at an instant; all of them are in UTC."""
    now = datetime.fromtimestamp(at, UTC)
    if periods := definition.get("periods"):
        minute = now.hour * 60 + now.minute
        return RUNNING if any(_within(period, minute) for period in periods) else STOPPED
    start, stop = (_last_firing(definition.get(key), now) for key in ("start", "stop"))
    if start is None and stop is None:
        return None
    return RUNNING if stop is None or (start is not None and start >= stop) else STOPPED


def _within(period: dict[str, str], minute: int) -> bool:
    begin, end = (_minutes(period[key]) for key in ("begin", "end"))
    if begin < end:
        return begin <= minute < end
    return minute >= begin or minute < end


def _minutes(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def _last_firing(expression: str | None, now: datetime) -> datetime | None:
    if expression is None:
        return None
    fields = [_numbers(field) for field in expression.split()]
    at = now.replace(second=0, microsecond=0)
    for _ in range(FARTHEST):
        shown = (at.minute, at.hour, at.day, at.month, at.isoweekday() % 7)
        if all(wanted is None or one in wanted for one, wanted in zip(shown, fields, strict=True)):
            return at
        at -= timedelta(minutes=1)
    return None


def _numbers(field: str) -> set[int] | None:
    """Parses a field of a cron expression: a star, or numbers separated by commas."""
    return None if field == "*" else {int(number) for number in field.split(",")}
