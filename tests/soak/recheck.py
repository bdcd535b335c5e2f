"""Checks the evidence of a run again: `PYTHONPATH=infra:tests python -m soak.recheck FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from .checks import CHECKS, FINAL, run
from .collect import kept


def main() -> int:
    evidence = kept(Path(sys.argv[1]))
    violations = list(run((*CHECKS, *FINAL), evidence))
    for violation in violations:
        print(violation)
    print(f"{len(evidence.entries)} requests, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
