"""Runs a bootstrap as a process and serves the runtime API from which it gets its work.

The API is AWS's: /2018-06-01/runtime/invocation/next, .../ID/response, .../ID/error and init/error.
Uses only the standard library, so that the tests do not need LocalStack.
"""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

LOOPBACK = "127.0.0.1"
API = "/2018-06-01/runtime"


@dataclass(frozen=True)
class Invocation:
    """One event for the function."""

    id: str
    arn: str
    trace: str
    payload: bytes
    timeout: int
    """Seconds."""


@dataclass(frozen=True)
class Outcome:
    """How an invocation ended."""

    payload: bytes
    is_error: bool
    log: str
    """Output that the bootstrap wrote in the meantime."""
    seconds: float


class InitError(Exception):
    """A bootstrap that failed before it asked for work."""

    def __init__(self, payload: bytes) -> None:
        super().__init__(payload.decode(errors="replace"))
        self.payload = payload


class Runtime:
    """A running bootstrap. It serves one invocation at a time, as on Lambda."""

    def __init__(self, code: Path, environment: dict[str, str], output: Path) -> None:
        self._work: queue.SimpleQueue[Invocation | None] = queue.SimpleQueue()
        self._events: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
        self._output = output
        self._server = _Server((LOOPBACK, 0), _Api)
        self._server.work, self._server.events = self._work, self._events
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()
        address = f"{LOOPBACK}:{self._server.server_port}"
        try:
            # A file, not a pipe: output written before a response can be read along with it.
            with output.open("ab") as log:
                self._read = log.tell()
                self._process = subprocess.Popen(
                    [code / "bootstrap"],
                    cwd=code,
                    env=environment | {"AWS_LAMBDA_RUNTIME_API": address},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
        except OSError:
            self._close()
            raise
        threading.Thread(target=self._await_end, daemon=True).start()

    def wait_until_ready(self) -> None:
        """Waits until the bootstrap asks for work."""
        event, body = self._events.get()
        if event == "ended":
            raise InitError(_error("Runtime.ExitError", f"Error: {body.decode()}"))
        if event != "next":
            raise InitError(body)

    def is_running(self) -> bool:
        """Reports whether it can take another invocation."""
        return self._process.poll() is None

    def invoke(self, invocation: Invocation) -> Outcome:
        """Invokes the function and waits for its response; kills a bootstrap that times out."""
        began = time.monotonic()
        self._work.put(invocation)
        payload, is_error = self._answer(invocation, began + invocation.timeout)
        return Outcome(payload, is_error, self._new_output(), time.monotonic() - began)

    def end(self) -> None:
        """Kills the process if it is still running."""
        self._process.kill()
        self._process.wait()
        self._close()

    def _answer(self, invocation: Invocation, until: float) -> tuple[bytes, bool]:
        """Returns the payload and whether it is an error, once the bootstrap asks for more work."""
        answer: tuple[bytes, bool] | None = None
        while True:
            try:
                event, body = self._events.get(timeout=max(until - time.monotonic(), 0))
            except queue.Empty:
                self.end()
                words = f"Error: Task timed out after {invocation.timeout:.2f} seconds"
                return _failed(invocation, "Sandbox.Timedout", words)
            if event == "ended":
                words = f"Error: {body.decode()}"
                return answer or _failed(invocation, "Runtime.ExitError", words)
            if event == "next" and answer:
                return answer
            if event != "next":
                answer = (body, event == "error")

    def _new_output(self) -> str:
        with self._output.open("rb") as log:
            log.seek(self._read)
            written = log.read()
        self._read += len(written)
        return written.decode(errors="replace")

    def _await_end(self) -> None:
        status = self._process.wait()
        how = f"signal: {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        self._events.put(("ended", f"Runtime exited with error: {how}".encode()))

    def _close(self) -> None:
        self._work.put(None)
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    work: queue.SimpleQueue[Invocation | None]
    events: queue.SimpleQueue[tuple[str, bytes]]


class _Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        if self.path != f"{API}/invocation/next":
            self._reply(404)
            return
        self.server.events.put(("next", b""))
        invocation = self.server.work.get()
        if invocation is None:
            self.close_connection = True
            return
        deadline = int((time.time() + invocation.timeout) * 1000)
        self._reply(
            200,
            invocation.payload,
            {
                "Lambda-Runtime-Aws-Request-Id": invocation.id,
                "Lambda-Runtime-Invoked-Function-Arn": invocation.arn,
                "Lambda-Runtime-Trace-Id": invocation.trace,
                "Lambda-Runtime-Deadline-Ms": str(deadline),
            },
        )

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        kind = self.path.rsplit("/", 1)[1]
        if kind not in ("response", "error"):
            self._reply(404)
            return
        # Queued before the reply, after which the bootstrap asks for more: keeps events in order.
        self.server.events.put((kind, body))
        self._reply(202)

    def _reply(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Does nothing: requests are not logged."""


def _failed(invocation: Invocation, kind: str, words: str) -> tuple[bytes, bool]:
    return _error(kind, f"RequestId: {invocation.id} {words}"), True


def _error(kind: str, words: str) -> bytes:
    """Formats an error as Lambda does."""
    return json.dumps({"errorType": kind, "errorMessage": words}).encode()
