"""Makes LocalStack's plugin importable: it is installed only in LocalStack's own environment."""

import sys
from pathlib import Path

PLUGIN = Path(__file__).resolve().parents[2] / "infra" / "localstack-plugin"
sys.path.insert(0, str(PLUGIN))
