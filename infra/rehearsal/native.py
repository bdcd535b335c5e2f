"""LocalStack and its functions as processes on this machine: no Docker, no download."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

from .emulator import Emulator, answers
from .processes import bare_environment, free_port, running

PATIENCE = 120.0
"""Seconds that LocalStack gets to start. It takes about ten on an idle machine."""


@contextlib.contextmanager
def localstack(python: Path, engine: Path, directory: Path) -> Iterator[Emulator]:
    """Runs LocalStack and the DynamoDB engine beneath it until the block ends.

    `python` is the interpreter of the environment that has LocalStack and our plugin installed.
    """
    with _engine(engine, directory) as dynamodb:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        environment = bare_environment() | {
            "GATEWAY_LISTEN": f"127.0.0.1:{port}",
            "DYNAMODB_LOCAL_PORT": str(dynamodb),
            "LAMBDA_RUNTIME_EXECUTOR": "process",
            # Fetch no certificates, send no statistics, and run no DNS server.
            "SKIP_SSL_CERT_DOWNLOAD": "1",
            "DISABLE_EVENTS": "1",
            "DNS_ADDRESS": "0",
            # Everything it writes is removed with the directory. It would write to /var/lib if it
            # mistook a container around us for its own.
            "HOME": str(directory),
            "TMPDIR": str(directory),
            "FILESYSTEM_ROOT": str(directory / "filesystem"),
            "OVERRIDE_IN_DOCKER": "0",
        }
        command = [str(python), "-m", "localstack.runtime.main"]
        log = directory / "localstack.log"

        def ready() -> bool:
            return answers(f"{url}/_localstack/health")

        with running(command, log, ready, environment, PATIENCE):
            yield Emulator(url)


@contextlib.contextmanager
def _engine(program: Path, directory: Path) -> Iterator[int]:
    """Runs an empty DynamoDB engine until the block ends; yields its port."""
    port = free_port()

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    log = directory / "engine.log"
    with running([str(program), str(port)], log, listens, bare_environment()):
        yield port
