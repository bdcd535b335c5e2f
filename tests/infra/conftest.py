"""Two stacks: one with the defaults, one with everything that is optional."""

import os

import pytest

# The transform requires a region; nothing is sent anywhere.
os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")

from template import EVERYTHING, Stack


@pytest.fixture(scope="session")
def plain() -> Stack:
    return Stack()


@pytest.fixture(scope="session")
def full() -> Stack:
    return Stack(**EVERYTHING)
