"""The AWS emulator, and the clients that talk to it."""

from __future__ import annotations

import contextlib
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from .processes import bare_environment, free_port, running

REGION = "eu-central-1"

ROOT = ("test", "test")
"""The access key that the emulator treats as the account's own."""


@dataclass(frozen=True)
class Emulator:
    """An AWS emulator at an address."""

    url: str

    def client(self, service: str, key: tuple[str, str] = ROOT) -> Any:
        """Returns a client for one service, with this access key."""
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=key[0],
            aws_secret_access_key=key[1],
            config=Config(retries={"total_max_attempts": 1}, read_timeout=120),
        )

    def environment(self, key: tuple[str, str] = ROOT) -> dict[str, str]:
        """Returns the variables with which AWS tools and `offhours` find it."""
        return bare_environment() | {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": key[0],
            "AWS_SECRET_ACCESS_KEY": key[1],
        }


@contextlib.contextmanager
def ministack(program: Path, directory: Path) -> Iterator[Emulator]:
    """Runs ministack, with roles enforced, until the block ends."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    # The functions are its children and inherit its environment, so it gets a bare one.
    environment = bare_environment() | {
        "AUTH": "true",
        "AWS_ENDPOINT_URL": url,
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "MINISTACK_REGION": REGION,
        "TMPDIR": str(directory),
    }
    log = directory / "ministack.log"
    with running([str(program)], log, lambda: answers(f"{url}/_ministack/health"), environment):
        yield Emulator(url)


def answers(url: str) -> bool:
    """Reports whether a health check succeeds."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False
