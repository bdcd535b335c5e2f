"""Counts the lines of Rust outside tests, by crate, and finds the longest functions.

Fails where a crate has more lines than lines.toml allows.

Blank and comment lines count. Benches, examples, folders and files of tests, and modules behind
`#[cfg(test)]`, in their own files or inline, do not.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ROOT / "crates"
TEST_SUPPORT = {"fuzz-targets", "nights", "testing"}
TEST_MODULE = re.compile(
    r"^#\[cfg\((?:test|any\(test, .*\))\)\]\n(?:#.*\n)*"
    r"(?:pub(?:\([a-z]+\))? )?mod (\w+)(;| \{)",
    re.M,
)
FUNCTION = re.compile(r"^( *)(?:pub(?:\([a-z]+\))? )?(?:const )?(?:async )?fn (\w+)")


def test_modules(source: Path, text: str) -> set[Path]:
    """Returns the files and folders of a source's test modules."""
    folder = source.parent if source.stem in ("lib", "main", "mod") else source.with_suffix("")
    names = [name for name, end in TEST_MODULE.findall(text) if end == ";"]
    return {path for name in names for path in (folder / f"{name}.rs", folder / name)}


def without_inline_tests(text: str) -> list[str]:
    """Returns a source's lines up to its inline test module, which by convention comes last."""
    for found in TEST_MODULE.finditer(text):
        if found.group(2) != ";":
            return text[: found.start()].rstrip().splitlines()
    return text.splitlines()


def sources(crate: Path) -> dict[Path, list[str]]:
    texts = {source: source.read_text() for source in sorted((crate / "src").rglob("*.rs"))}
    tests: set[Path] = set()
    for source, text in texts.items():
        tests |= test_modules(source, text)
    return {
        source: without_inline_tests(text)
        for source, text in texts.items()
        if not tests.intersection((source, *source.parents))
    }


def functions(source: Path, lines: list[str]) -> list[tuple[int, str]]:
    """Returns each function's length and place."""
    found = []
    for first, line in enumerate(lines):
        start = FUNCTION.match(line)
        if start is None or line.rstrip().endswith(";"):
            continue
        end = next(
            (last for last in range(first, len(lines)) if lines[last].rstrip() == f"{start[1]}}}"),
            first,
        )
        place = f"{source.relative_to(ROOT)}:{first + 1} {start[2]}"
        found.append((end - first + 1, place))
    return found


def main() -> int:
    most = tomllib.loads((ROOT / "lines.toml").read_text())
    longest, above, total = [], [], 0
    for crate in sorted(set(OURS.iterdir()) - {OURS / name for name in TEST_SUPPORT}):
        counted = sources(crate)
        lines = sum(map(len, counted.values()))
        total += lines
        allowed = most.get(crate.name, 0)
        if lines > allowed:
            above.append(f"{crate.name} has {lines:,} lines, and lines.toml allows {allowed:,}")
        print(f"{crate.name:<16} {lines:>7,} of {allowed:>7,}")
        for source, text in counted.items():
            longest += functions(source, text)
    print(f"{'all':<16} {total:>7,} of {sum(most.values()):>7,}\n")
    print("longest functions")
    for length, place in sorted(longest, reverse=True)[:5]:
        print(f"{length:>5}  {place}")
    print(*above, sep="\n", file=sys.stderr, end="\n" if above else "")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
