"""Tokens from SSM: who reads which, and that each inventory reads it again."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from botocore.exceptions import ClientError
from conftest import Deployed
from emulators import refusing
from rehearsal.emulator import REGION
from rehearsal.examples import TOKENS

PARAMETER = "/offhours/reading/hz-eu"


@pytest.fixture
def stored(cycled: Deployed) -> Iterator[Deployed]:
    """The deployed stack, whose token is restored at the end."""
    yield cycled
    _store(cycled, TOKENS["reading/hz-eu"])
    _inventory(cycled)


def test_an_inventory_uses_the_token_that_is_stored_now(stored: Deployed) -> None:
    assert "listed whole" in _inventory(stored)
    _store(stored, "rotated-and-wrong")
    assert "listed whole" not in _inventory(stored)
    _store(stored, TOKENS["reading/hz-eu"])
    assert "listed whole" in _inventory(stored), "without any deployment"


@refusing
@pytest.mark.parametrize(
    ("role", "reads", "leaves"),
    [
        ("PollStatusRole", "reading", "acting"),
        ("StopRole", "acting", "reading"),
        ("StartRole", "acting", "reading"),
    ],
)
def test_each_function_reads_only_the_tokens_that_it_uses(
    deployed: Deployed, role: str, reads: str, leaves: str
) -> None:
    emulator, stack = deployed.stack.emulator, deployed.stack.name
    roles = emulator.client("iam").list_roles()["Roles"]
    (arn,) = [one["Arn"] for one in roles if one["RoleName"].startswith(f"{stack}-{role}-")]
    session = emulator.client("sts").assume_role(RoleArn=arn, RoleSessionName="tokens")
    ssm = boto3.client(
        "ssm",
        endpoint_url=emulator.url,
        region_name=REGION,
        aws_access_key_id=session["Credentials"]["AccessKeyId"],
        aws_secret_access_key=session["Credentials"]["SecretAccessKey"],
        aws_session_token=session["Credentials"]["SessionToken"],
    )
    found = ssm.get_parameter(Name=f"/offhours/{reads}/do-main", WithDecryption=True)
    assert found["Parameter"]["Value"] == TOKENS[f"{reads}/do-main"]
    with pytest.raises(ClientError, match="AccessDenied"):
        ssm.get_parameter(Name=f"/offhours/{leaves}/do-main", WithDecryption=True)


def _store(deployed: Deployed, token: str) -> None:
    deployed.stack.emulator.client("ssm").put_parameter(
        Name=PARAMETER, Value=token, Type="SecureString", Overwrite=True
    )


def _inventory(deployed: Deployed) -> str:
    """Returns how listing the account went, in poll-status's own words."""
    report = deployed.stack.invoke("poll-status", {"inventory": ["hz-eu"]})
    return " ".join(str(one.get("state") or one.get("reason")) for one in report["outcomes"])
