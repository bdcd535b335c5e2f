"""A recreated machine and its snapshots count as the machine that they were made from."""

from __future__ import annotations

import pytest

from .evidence import Sight
from .originals import original, original_of, sights

DROPLET, SERVER = "do-main/droplet/7", "hz-eu/server/48"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ({"labels": {"offhours": "away", "offhours-of": "server.48"}}, "a/server/48"),
        ({"tags": ["offhours:away", "offhours-of:droplet-7"]}, "a/droplet/7"),
        ({"name": "offhours.droplet.7.0123456789abcdef bench-1"}, "a/droplet/7"),
        ({"name": "mine", "tags": None, "labels": {}}, None),
        ({"name": "web", "tags": ["offhours:droplet-7"]}, None),
    ],
)
def test_the_original_is_in_labels_tags_or_the_name(shown: dict, expected: str | None) -> None:
    assert original_of("a", shown) == expected


def test_only_a_recreated_machine_has_another_reference() -> None:
    recreated = {"labels": {"offhours-of": "server.48"}}
    assert original("hz-eu/server/901", recreated) == SERVER
    assert original("hz-eu/server/901", {"labels": {}}) == "hz-eu/server/901"
    assert original("do-main/database/d-1", {"name": "offhours.droplet.7.x"}) == (
        "do-main/database/d-1"
    )


def test_machines_are_counted_under_every_id_and_only_complete_snapshots() -> None:
    labels = {"labels": {"offhours-of": "server.48"}}
    resources = {SERVER: {"labels": {}}, "hz-eu/server/901": labels}
    images = [
        {"account": "hz-eu", "status": "creating"} | labels,
        {"account": "do-main", "name": "offhours.droplet.7.0123456789abcdef"},
    ]
    expected = [Sight(5.0, SERVER, 2, 0), Sight(5.0, DROPLET, 0, 1)]
    assert sights(5.0, [SERVER, DROPLET], resources, images) == expected
