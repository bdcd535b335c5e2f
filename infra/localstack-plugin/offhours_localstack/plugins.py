"""Replaces what in LocalStack needs Docker or a download, or shares a folder with other runs.

`LAMBDA_RUNTIME_EXECUTOR=process` runs each function as a process instead of a container, and
`DYNAMODB_LOCAL_PORT` selects the engine at that port instead of DynamoDB Local.
"""

from __future__ import annotations

import tempfile

from localstack import config
from localstack.runtime import hooks
from localstack.services.lambda_.invocation.plugins import RuntimeExecutorPlugin


class ProcessExecutorPlugin(RuntimeExecutorPlugin):
    """Registers the executor with LocalStack as `process`."""

    name = "process"

    def load(self, *_args, **_kwargs):
        from .executor import ProcessExecutor

        return ProcessExecutor


@hooks.on_infra_start(should_load=lambda: bool(config.DYNAMODB_LOCAL_PORT))
def use_running_engine() -> None:
    """Replaces the method that downloads and starts DynamoDB Local; keeps the provider as it is."""
    from localstack.services.dynamodb.server import DynamodbServer

    DynamodbServer.start_dynamodb = lambda _server: True


@hooks.on_infra_start()
def keep_objects_apart() -> None:
    """Keeps S3 objects under TMPDIR, like everything else, not in one folder per machine."""
    from localstack.services.s3 import provider

    provider.DEFAULT_S3_TMP_DIR = f"{tempfile.gettempdir()}/s3"
