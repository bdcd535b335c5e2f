"""Which emulator the tests run on, and what only one of them can show."""

import os
from pathlib import Path

import pytest

LOCALSTACK = (
    Path(os.environ["OFFHOURS_LOCALSTACK"]) if "OFFHOURS_LOCALSTACK" in os.environ else None
)
"""The Python of LocalStack if the tests are to run on it; otherwise they run on ministack."""

refusing = pytest.mark.skipif(
    LOCALSTACK is not None, reason="LocalStack without an account enforces no policy"
)
alarming = pytest.mark.skipif(
    LOCALSTACK is not None, reason="LocalStack evaluates these alarms every 10 to 15 minutes"
)
deploying_webhooks = pytest.mark.skipif(
    LOCALSTACK is None, reason="ministack's CloudFormation has no connections and no destinations"
)
