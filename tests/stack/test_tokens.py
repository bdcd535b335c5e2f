"""Tokens from SSM: read once per cold start, and again after the provider refused one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import Deployed
from rehearsal.examples import TOKENS

PARAMETER = "/offhours/hz-eu"


@pytest.fixture
def stored(cycled: Deployed) -> Iterator[Deployed]:
    """The deployed stack, whose token is restored at the end."""
    yield cycled
    _store(cycled, TOKENS["hz-eu"])
    # A function that holds the wrong one is refused once more, and reads it again.
    for _ in range(2):
        _inventory(cycled)


def test_a_stored_token_is_read_again_once_the_provider_refuses_the_one_in_use(
    stored: Deployed,
) -> None:
    assert "listed whole" in _inventory(stored)
    _store(stored, "rotated-and-wrong")
    assert "listed whole" in _inventory(stored), "the token in use is kept"
    stored.simulator.refuse_next_token("hz-eu")
    assert "listed whole" not in _inventory(stored)
    assert "listed whole" not in _inventory(stored), "the stored one was read"
    _store(stored, TOKENS["hz-eu"])
    assert "listed whole" in _inventory(stored), "without any deployment"


def _store(deployed: Deployed, token: str) -> None:
    deployed.stack.emulator.client("ssm").put_parameter(
        Name=PARAMETER, Value=token, Type="SecureString", Overwrite=True
    )


def _inventory(deployed: Deployed) -> str:
    """Returns how listing the account went, in poll-status's own words."""
    report = deployed.stack.invoke("poll-status", {"inventory": ["hz-eu"]})
    return " ".join(str(one.get("state") or one.get("reason")) for one in report["outcomes"])
