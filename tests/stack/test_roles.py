"""Every path passes under the roles as they are; without any one statement, some path fails."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from emulators import refusing
from paths import BrokenPath
from rehearsal.stack import Failed
from roles import Statement
from walks import ENFORCED, WHOLE

pytestmark = refusing


def test_every_path_passes_under_the_roles_as_they_are(walks: dict[str, Future[None]]) -> None:
    walks[WHOLE].result()


@pytest.mark.parametrize("lacking", ENFORCED, ids=str)
def test_a_role_without_one_of_its_statements_is_not_enough(
    walks: dict[str, Future[None]], lacking: Statement
) -> None:
    with pytest.raises((BrokenPath, Failed)):
        walks[str(lacking)].result()
