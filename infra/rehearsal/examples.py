"""Accounts of the simulated clouds, and configurations for them."""

from __future__ import annotations

from collections.abc import Mapping

from .emulator import Emulator
from .stack import TOKEN_PATH

TOKENS = {
    "acting/do-main": "simulated-do-token",
    "reading/do-main": "simulated-do-reads",
    "acting/hz-eu": "simulated-hz-token",
    "reading/hz-eu": "simulated-hz-reads",
}
"""The tokens that the simulator accepts, by where they are kept below the token path."""


def store_tokens(emulator: Emulator, tokens: Mapping[str, str] = TOKENS) -> None:
    """Stores the accounts' tokens under the path that a stack may read."""
    ssm = emulator.client("ssm")
    for name, token in tokens.items():
        ssm.put_parameter(
            Name=f"{TOKEN_PATH}/{name}", Value=token, Type="SecureString", Overwrite=True
        )


def standing(desired: str, settings: str = "") -> str:
    """Returns a configuration with one schedule, `nights`, whose desired state holds except in the
    first minute of a year."""
    first, second = {"stopped": ("start", "stop"), "running": ("stop", "start")}[desired]
    return f"""
timezone = "UTC"
{settings}

[accounts.do-main]
provider = "digitalocean"
token = "ssm:/offhours/acting/do-main"
read_token = "ssm:/offhours/reading/do-main"

[accounts.hz-eu]
provider = "hetzner"
token = "ssm:/offhours/acting/hz-eu"
read_token = "ssm:/offhours/reading/hz-eu"

[schedules.nights]
{first} = "0 0 1 1 *"
{second} = "1 0 1 1 *"
"""
