"""What `make` reports before it builds anything, when an emulator cannot be set up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=ROOT, env=ours, capture_output=True, text=True, check=False)


def test_an_unknown_emulator_is_refused() -> None:
    done = make("stack", "EMULATOR=moto")
    assert done.returncode != 0
    assert "EMULATOR is ministack, localstack or localstack-docker, not moto" in done.stderr


@pytest.mark.parametrize("python", ["python3.13-that-is-missing", "false"])
def test_without_its_python_localstack_is_not_set_up(tmp_path: Path, python: str) -> None:
    venv = tmp_path / "localstack"
    done = make(f"{venv}/installed", f"LOCALSTACK_VENV={venv}", f"LOCALSTACK_PYTHON={python}")
    assert done.returncode != 0
    assert "LocalStack needs Python 3.13" in done.stderr
    assert "set LOCALSTACK_PYTHON to its path" in done.stderr
    assert not venv.exists()


@pytest.mark.skipif(sys.version_info[:2] == (3, 13), reason="this Python is LocalStack's own")
def test_any_other_python_is_not_enough_for_localstack(tmp_path: Path) -> None:
    venv = tmp_path / "localstack"
    python = f"LOCALSTACK_PYTHON={sys.executable}"
    done = make(f"{venv}/installed", f"LOCALSTACK_VENV={venv}", python)
    assert done.returncode != 0
    assert "LocalStack needs Python 3.13" in done.stderr
