"""The output of a run: its result in JSON, the pictures, and BENCHMARKS.md made from them."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from . import costs, pictures, report
from .figures import Result

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "docs" / "benchmarks"
"""The folder of the results in JSON, the pictures, and people's notes about them."""

COSTS = ROOT / "docs" / "costs.md"
TABLE = re.compile(r"(<!-- The table begins: .* -->\n).*(<!-- The table ends. -->)", re.S)


def machine() -> dict[str, str | int]:
    """Describes the machine and the versions of what was measured."""
    processor = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        named = next(line for line in lines if line.startswith("model name"))
        processor = named.split(":", 1)[1].strip()
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    packages = ("boto3", "awslambdaric", "aws-lambda-powertools")
    return {
        "processor": processor,
        "cores": os.cpu_count() or 1,
        "memory_gib": round(pages / 1024**3),
        "system": f"{platform.system()} {platform.release()}",
        "rust": _said("rustc", "--version"),
        "python": platform.python_version(),
        "packages": ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages),
    }


def commit() -> str:
    """Returns the measured commit, and whether the sources differ from it."""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        commit = _said("git", "rev-parse", "--short=12", "HEAD")
        changed = _said("git", "status", "--porcelain", "--", "crates", "Cargo.toml", "Cargo.lock")
        return f"{commit}, with changes" if changed else commit
    return "unknown"


def _said(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def keep(result: Result, name: str) -> None:
    """Writes the JSON of a run, and BENCHMARKS.md from all results that exist."""
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / f"{name}.json").write_text(_lines(result))
    if name == "scale":
        page = COSTS.read_text()
        COSTS.write_text(TABLE.sub(lambda marks: marks[1] + costs.table(result) + marks[2], page))
    functions, over_tls, scale = (_kept(of) for of in ("result", "tls", "scale"))
    if functions is None:
        return
    notes = KEPT / "notes.md"
    written = notes.read_text() if notes.exists() else ""
    of_functions = _images(pictures.of_functions(functions, KEPT))
    of_scale = _images(pictures.of_scale(scale, KEPT)) if scale else ""
    (ROOT / "BENCHMARKS.md").write_text(
        report.document(functions, over_tls, scale, written, of_functions, of_scale)
    )


def _kept(name: str) -> Result | None:
    path = KEPT / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def _images(drawn: list[tuple[str, Path]]) -> str:
    return "\n\n".join(f"![{title}]({path.relative_to(ROOT)})" for title, path in drawn)


def _lines(result: Result) -> str:
    """Formats JSON with each list of samples on a line of its own."""
    text = json.dumps(result, indent=1)
    innermost = re.compile(r"\[([^\[\]{}]*)\]")
    return innermost.sub(lambda found: "[" + " ".join(found[1].split()) + "]", text) + "\n"


def progress(line: str) -> None:
    """Prints a line of progress to standard error."""
    print(line, file=sys.stderr, flush=True)
