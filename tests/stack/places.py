"""The locations of files and uploads."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "infra" / "template.yaml"
EXAMPLE = ROOT / "examples" / "rehearsal"
EVENTS = ROOT / "infra" / "events"

PACKAGES = "packages"
"""The bucket for code and templates."""
