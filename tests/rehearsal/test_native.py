"""LocalStack without Docker, with fake programs in place of it and its engine."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from rehearsal import native
from rehearsal.processes import NotReady

SERVE = """
import http.server, json, os, pathlib, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

def serve(port):
    here = pathlib.Path(__file__)
    noted = {"process": os.getpid(), "environment": dict(os.environ)}
    here.with_suffix(".noted").write_text(json.dumps(noted))
    http.server.HTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()
"""
ENGINE = SERVE + "serve(sys.argv[1])"
LOCALSTACK = SERVE + "serve(os.environ['GATEWAY_LISTEN'].split(':')[1])"
FAILS = "import sys; sys.exit('no module named localstack')"


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def noted(path: Path) -> dict:
    return json.loads(path.with_suffix(".noted").read_text())


def runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_it_runs_on_the_engine_and_both_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a person's own")
    engine = program(tmp_path / "engine", ENGINE)
    python = program(tmp_path / "python", LOCALSTACK)
    with native.localstack(python, engine, tmp_path) as emulator:
        environment = noted(python)["environment"]
        assert emulator.url == f"http://{environment['GATEWAY_LISTEN']}"
        assert environment["LAMBDA_RUNTIME_EXECUTOR"] == "process"
        assert environment["DYNAMODB_LOCAL_PORT"].isdecimal()
        # Functions are its children: they must not get this shell's credentials.
        assert "AWS_SECRET_ACCESS_KEY" not in environment
        assert runs(noted(python)["process"])
        # What it writes is removed with the directory.
        for name in ("HOME", "TMPDIR", "FILESYSTEM_ROOT"):
            assert Path(environment[name]).is_relative_to(tmp_path)
    assert not runs(noted(python)["process"])
    assert not runs(noted(engine)["process"])


def test_a_localstack_that_does_not_start_leaves_no_engine(tmp_path: Path) -> None:
    engine = program(tmp_path / "engine", ENGINE)
    python = program(tmp_path / "python", FAILS)
    failed = pytest.raises(NotReady, match="no module named localstack")
    with failed, native.localstack(python, engine, tmp_path):
        pass
    assert not runs(noted(engine)["process"])
