"""What the functions reach besides the runtime API: DynamoDB, the clouds, and AWS Lambda."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import re
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from rehearsal.processes import bare_environment, free_port, running

ROOT = Path(__file__).resolve().parents[2]
AMAZON_ROOTS = ROOT / "crates" / "environment" / "src" / "amazon-roots.pem"
TOKEN = "simulated-do-token"
FLEET = f"""
[[accounts]]
name = "do-main"
provider = "digitalocean"
token = "{TOKEN}"
rate_limit = {{ per_hour = 1000000, per_minute = 1000000 }}

[[droplets]]
id = 1
name = "web"
tags = ["offhours:office"]
"""


@contextlib.contextmanager
def engine(programs: Path, directory: Path, *more: str) -> Iterator[str]:
    """Runs an empty DynamoDB engine. Yields its address."""
    port = free_port()
    command = [str(programs / "examples" / "engine"), str(port), *more]
    log = directory / "engine.log"
    with running(command, log, lambda: _listens(port), bare_environment()):
        yield f"http://127.0.0.1:{port}"


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def seed(programs: Path, endpoint: str, prefix: str, records: int, fleet: str) -> None:
    """Creates and fills the tables with a prefix."""
    command = [str(programs / "examples" / "seed"), endpoint, prefix, str(records), fleet]
    subprocess.run(command, check=True)


@contextlib.contextmanager
def accepting_functions() -> Iterator[str]:
    """Runs an AWS Lambda that accepts every invocation and executes none. Yields its address."""

    class Accepts(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Accepts)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class Counting:
    """A proxy to DynamoDB that counts the requests through it, by operation."""

    _TARGET = re.compile(rb"\r\nx-amz-target: *DynamoDB_\d+\.(\w+)", re.IGNORECASE)

    def __init__(self, to: int) -> None:
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sent: list[bytearray] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def requests(self) -> collections.Counter[str]:
        """Returns the number of requests so far, by operation."""
        names = (name for sent in self._sent for name in self._TARGET.findall(bytes(sent)))
        return collections.Counter(name.decode() for name in names)

    def close(self) -> None:
        """Stops accepting connections."""
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                # Otherwise the second part of what a client sends waits for an acknowledgment.
                for side in (client, server):
                    side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sent = bytearray()
                self._sent.append(sent)
                for pump in ((client, server, sent), (server, client, bytearray())):
                    threading.Thread(target=_pump, args=pump, daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket, seen: bytearray) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            seen += data
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def counted(endpoint: str) -> Iterator[Counting]:
    """Runs a counting proxy to an engine."""
    counting = Counting(int(endpoint.rsplit(":", 1)[1]))
    try:
        yield counting
    finally:
        counting.close()


@contextlib.contextmanager
def over_tls(endpoint: str, directory: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Puts an engine behind TLS, terminated by a process of its own. Yields its address, and the
    settings that make clients trust its certificate beside the roots that each trusts at AWS:
    Amazon's five for ours, all public ones for boto3."""
    import botocore
    import trustme

    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(
        directory / "server.pem"
    )
    settings = {}
    for name, trusted in (
        ("SSL_CERT_FILE", AMAZON_ROOTS),
        ("AWS_CA_BUNDLE", Path(botocore.__file__).with_name("cacert.pem")),
    ):
        bundle = directory / f"{name}.pem"
        bundle.write_bytes(trusted.read_bytes() + authority.cert_pem.bytes())
        settings[name] = str(bundle)
    port = free_port()
    to = endpoint.rsplit(":", 1)[1]
    command = [sys.executable, __file__, str(port), to, str(directory / "server.pem")]
    environment = {**bare_environment(), "PYTHONPATH": ":".join(sys.path)}
    with running(command, directory / "tls.log", lambda: _listens(port), environment):
        yield f"https://127.0.0.1:{port}", settings


async def _end_tls(port: int, to: int, certificate: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
        sink.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", to)
        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", port, ssl=context)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_end_tls(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
