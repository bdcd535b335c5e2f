"""The parameters with which the rehearsed stack is deployed."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from deploy import FUNCTIONS
from rehearsal import stack

CLOUDS = "http://127.0.0.1:8100"
MACHINES = {"x86_64": 0x3E, "arm64": 0xB7}


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the built functions, still empty."""
    monkeypatch.setattr(stack, "BUILT", tmp_path)
    return tmp_path


@pytest.mark.parametrize(("architecture", "machine"), MACHINES.items())
def test_the_functions_run_on_the_processor_they_were_built_for(
    built: Path, architecture: str, machine: int
) -> None:
    for short in FUNCTIONS:
        (built / short).mkdir()
        # The header of a 64-bit ELF program.
        head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 2, machine)
        (built / short / "bootstrap").write_bytes(head)
    assert stack.parameters(CLOUDS, Timers="DISABLED") == {
        "Architecture": architecture,
        "TokenPath": "/offhours",
        "DigitalOceanUrl": CLOUDS,
        "HetznerUrl": CLOUDS,
        "Timers": "DISABLED",
    }


def test_without_built_functions_it_says_how_to_build_them(built: Path) -> None:
    with pytest.raises(stack.Failed, match="run `make build` first"):
        stack.parameters(CLOUDS)
