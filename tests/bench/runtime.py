"""A Lambda runtime API on loopback, which measures one function from spawn to end."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import h11

PATIENCE = 60.0
"""Seconds that a function gets for each step."""
ACCOUNT = "123456789012"
REGION = "eu-central-1"


class FunctionFailed(Exception):
    """A function ended, failed, or did not answer."""


@dataclass(frozen=True)
class Subject:
    """A function and the event it is invoked with."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    event: bytes


@dataclass
class Life:
    """The measurements of one process of a function."""

    start_up_ms: float = 0.0
    """From spawn to its first call for work."""
    first_ms: float = 0.0
    """Its first invocation."""
    warm_ms: list[float] = field(default_factory=list)
    """Each further invocation."""
    cold_cpu_ms: float = 0.0
    """Processor time until the response of its first invocation."""
    cpu_ms: float = 0.0
    """Processor time, in user and system mode, of its whole life."""
    memory_mib: float = 0.0
    """The most memory that it ever had in RAM."""
    answer: bytes = b""
    """Its last response."""


@dataclass
class _Request:
    method: str
    path: str
    body: bytes
    at: int
    """When it had fully arrived, in nanoseconds of the performance counter."""


class _Connection:
    """One connection from the function, with one request after the other."""

    def __init__(self, stream: socket.socket) -> None:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = stream
        self._http = h11.Connection(h11.SERVER)

    def request(self) -> _Request | None:
        """Returns the next request, or None if the other side has closed the connection."""
        head, body = None, b""
        at = time.perf_counter_ns()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                try:
                    self._http.receive_data(self.stream.recv(65536))
                except ConnectionResetError:
                    return None
                at = time.perf_counter_ns()
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return _Request(head.method.decode(), head.target.decode(), body, at)
            else:
                return None

    def answer(self, code: int, headers: Mapping[str, str], body: bytes) -> int:
        """Sends a response. Returns when that began, in nanoseconds of the performance counter."""
        described = {
            **headers,
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        }
        answer = h11.Response(status_code=code, headers=list(described.items()))
        whole = b"".join(
            self._http.send(event) or b""
            for event in (answer, h11.Data(data=body), h11.EndOfMessage())
        )
        self._http.start_next_cycle()
        at = time.perf_counter_ns()
        self.stream.sendall(whole)
        return at


class _Served:
    """One process of a function, served with invocations until it has answered them all."""

    def __init__(self, subject: Subject, listener: socket.socket, log: Path) -> None:
        self._subject = subject
        self._listener = listener
        self._log = log
        self._connections: dict[socket.socket, _Connection] = {}
        host, port = listener.getsockname()
        with log.open("wb") as output:
            self._spawned = time.perf_counter_ns()
            self._process = subprocess.Popen(
                subject.command,
                env=_environment(subject, f"{host}:{port}"),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def live(self, warm: int) -> Life:
        """Invokes it once, then `warm` more times, then ends it."""
        life = Life()
        try:
            for index in range(warm + 1):
                connection, call = self._expect("GET", "/next")
                if index == 0:
                    life.start_up_ms = (call.at - self._spawned) / 1e6
                began = connection.answer(200, self._headers(index), self._subject.event)
                connection, answer = self._expect("POST", "/response")
                took = (answer.at - began) / 1e6
                if index == 0:
                    life.first_ms = took
                    life.cold_cpu_ms = self._processor_time()
                else:
                    life.warm_ms.append(took)
                life.answer = answer.body
                connection.answer(202, {}, b'{"status":"OK"}')
            life.memory_mib = self._peak_memory()
        finally:
            life.cpu_ms = self._end()
        return life

    def _headers(self, index: int) -> dict[str, str]:
        name = self._subject.name
        return {
            "Lambda-Runtime-Aws-Request-Id": f"8476a536-e9f4-11e8-9739-{index:012}",
            "Lambda-Runtime-Deadline-Ms": str(int((time.time() + PATIENCE) * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": (
                f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"
            ),
            "Lambda-Runtime-Trace-Id": "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=0",
        }

    def _expect(self, method: str, ending: str) -> tuple[_Connection, _Request]:
        connection, request = self._next()
        if request.method != method or not request.path.endswith(ending):
            raise self._failed(f"asked {request.method} {request.path}: {request.body.decode()}")
        return connection, request

    def _next(self) -> tuple[_Connection, _Request]:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            ready, _, _ = select.select([self._listener, *self._connections], [], [], 1.0)
            for stream in ready:
                if stream is self._listener:
                    accepted, _ = stream.accept()
                    self._connections[accepted] = _Connection(accepted)
                elif request := self._connections[stream].request():
                    return self._connections[stream], request
                else:
                    self._connections.pop(stream).stream.close()
            if not ready and self._process.poll() is not None:
                raise self._failed(f"ended with {self._process.returncode}")
        raise self._failed(f"did not answer within {PATIENCE:.0f} s")

    def _failed(self, what: str) -> FunctionFailed:
        said = self._log.read_text(errors="replace").strip().splitlines()[-5:]
        return FunctionFailed("\n".join([f"{self._subject.name} {what}", *said]))

    def _peak_memory(self) -> float:
        # Not the maximum that wait4 reports: that includes this process, from before the exec.
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise self._failed("has no peak memory in /proc")

    def _processor_time(self) -> float:
        """Returns the processor time of its threads so far, in milliseconds."""
        threads = Path(f"/proc/{self._process.pid}/task").iterdir()
        return sum(int((one / "schedstat").read_text().split()[0]) for one in threads) / 1e6

    def _end(self) -> float:
        """Ends the process. Returns the processor time that it took, in milliseconds."""
        if self._process.returncode is not None:
            return 0.0
        # Not Popen.kill: that would reap a process that has ended, and lose its usage.
        os.kill(self._process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        for stream in self._connections:
            stream.close()
        return (usage.ru_utime + usage.ru_stime) * 1000


def live(subject: Subject, warm: int) -> Life:
    """Measures a function's life: its start, its first invocation, and `warm` further ones."""
    with (
        tempfile.TemporaryDirectory(prefix="offhours-bench-") as directory,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        return _Served(subject, listener, Path(directory, "log")).live(warm)


def _environment(subject: Subject, api: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "TZ": ":UTC",
        "AWS_LAMBDA_RUNTIME_API": api,
        "AWS_LAMBDA_FUNCTION_NAME": subject.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "128",
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{subject.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": "bench",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        **subject.environment,
    }
