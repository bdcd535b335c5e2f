"""The statements of the functions' roles, and copies of the template that lack one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samcli.yamlhelper import yaml_parse

ROLES = ("DispatchRole", "PollStatusRole", "StopRole", "StartRole", "PublishRole")

NOT_ENFORCED = {
    "WriteLog": "the emulator writes the log itself, whatever the role says",
    "ReportFailures": "the emulator hands dead letters over itself, too",
    "DecryptTokens": "stands only where the tokens have a key of their own",
    "LeaveTokensThatAct": "denies, so that nothing fails without it",
    "LeaveTokensThatRead": "denies, too",
}
"""Statements whose absence no emulator shows; they are checked in the template alone."""


@dataclass(frozen=True)
class Statement:
    """One statement of one role."""

    role: str
    sid: str

    def __str__(self) -> str:
        return f"{self.role}-{self.sid}"


def read(template: Path) -> dict[str, Any]:
    """Reads a template, with its short functions (`!Ref`) spelled out."""
    return yaml_parse(template.read_text())


def statements(template: dict[str, Any]) -> list[Statement]:
    """Returns all statements of the functions' roles."""
    return [
        Statement(role, statement["Sid"]) for role in ROLES for statement in _of(template, role)
    ]


def without(template: dict[str, Any], statement: Statement) -> dict[str, Any]:
    """Returns a copy of a template that lacks one statement."""
    lacking = copy.deepcopy(template)
    for policy in lacking["Resources"][statement.role]["Properties"]["Policies"]:
        document = policy["PolicyDocument"]
        document["Statement"] = [
            one for one in document["Statement"] if _spelt_out(one)["Sid"] != statement.sid
        ]
    return lacking


def _of(template: dict[str, Any], role: str) -> Iterator[dict[str, Any]]:
    for policy in template["Resources"][role]["Properties"]["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            yield _spelt_out(statement)


def _spelt_out(statement: dict[str, Any]) -> dict[str, Any]:
    """Returns a statement, even if it is under a condition."""
    return statement["Fn::If"][1] if "Fn::If" in statement else statement
