"""Programs that run in the background until we are done."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PATIENCE = 30.0
"""Seconds that a program gets to end and, unless the caller allows more, to start."""


class NotReady(Exception):
    """A program ended, or timed out, before it was ready."""


def end_on_termination() -> None:
    """Makes `kill` work like Ctrl-C, which also ends our background programs."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def in_a_directory(name: str, work: Callable[[Path], int], *failures: type[Exception]) -> int:
    """Runs a program's work in a temporary directory and returns its exit code. Reports a failure
    in one line; Ctrl-C and `kill` also end the background programs."""
    end_on_termination()
    try:
        with tempfile.TemporaryDirectory(prefix=f"offhours-{name}-") as directory:
            return work(Path(directory))
    except (NotReady, *failures) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; nothing of it is left", file=sys.stderr)
        return 130


def free_port() -> int:
    """Returns a loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(
    command: list[str],
    log: Path,
    ready: Callable[[], bool],
    env: dict[str, str],
    patience: float = PATIENCE,
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a program, with its output in `log`, until the block ends. Waits until it is ready."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        _wait(process, log, ready, patience)
        yield process
    finally:
        _end(process)


def _wait(
    process: subprocess.Popen[bytes], log: Path, ready: Callable[[], bool], patience: float
) -> None:
    until = time.monotonic() + patience
    while not ready():
        if process.poll() is not None or time.monotonic() > until:
            said = log.read_text(errors="replace").strip().splitlines()[-5:]
            name = Path(process.args[0]).name  # type: ignore[index]
            raise NotReady(f"{name} did not start; see {log}:\n" + "\n".join(said))
        time.sleep(0.05)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def bare_environment() -> dict[str, str]:
    """Returns the least a program needs to start: no credentials, none of this shell's settings."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "LANG": "C.UTF-8",
    }
