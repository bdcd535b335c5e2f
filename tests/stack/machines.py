"""A machine over SSH beside the simulated clouds, at a real server if this machine has one."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rehearsal.emulator import Emulator

SSHD = Path("/usr/sbin/sshd")
NAME = "build-01"
MACHINE = f"lab/machine/{NAME}"


@dataclass(frozen=True)
class Host:
    """A running SSH server whose machine is a file."""

    port: int
    user: str
    host_key: str
    folder: Path

    def account(self) -> str:
        """Returns the account that reaches it, as a user would write it."""
        return f"""
[accounts.lab]
provider = "ssh"
host = "127.0.0.1"
allow_private_hosts = true
port = {self.port}
user = "{self.user}"
key = "ssm:/offhours/lab-key"
host_keys = ["{self.host_key}"]

[accounts.lab.machines.{NAME}]
start = "start {NAME}"
stop = "stop {NAME}"
status = "status {NAME}"
tags = ["offhours:minutes"]
"""

    def key(self) -> str:
        """Returns the private key that may log in."""
        return (self.folder / "user").read_text()

    def commands(self) -> list[str]:
        """Returns every command that it was asked to run, oldest first."""
        return (self.folder / "commands").read_text().splitlines()


def missing() -> bool:
    """Reports whether there is no SSH server here. Fails if one is required."""
    needed = os.environ.get("OFFHOURS_NEEDS_SSHD") == "1"
    assert SSHD.exists() or not needed, f"{SSHD} is missing"
    return not SSHD.exists()


@contextlib.contextmanager
def host(program: Path, emulator: Emulator) -> Iterator[Host | None]:
    """Runs the server until the block ends, with its key where a stack may read it. Yields None
    without sshd."""
    if missing():
        yield None
        return
    command = [str(program), NAME]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout
        found = json.loads(process.stdout.readline())
        running = Host(**{**found, "folder": Path(found["folder"])})
        emulator.client("ssm").put_parameter(
            Name="/offhours/lab-key", Value=running.key(), Type="SecureString", Overwrite=True
        )
        yield running
