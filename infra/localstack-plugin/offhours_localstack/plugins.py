"""The places where LocalStack would need Docker or a download, or share a folder with other runs.

`LAMBDA_RUNTIME_EXECUTOR=process` runs each function as a process instead of a container, and with
`DYNAMODB_LOCAL_PORT` the engine at that port serves in place of DynamoDB Local.
"""

from __future__ import annotations

import tempfile

from localstack import config
from localstack.runtime import hooks
from localstack.services.lambda_.invocation.plugins import RuntimeExecutorPlugin


class ProcessExecutorPlugin(RuntimeExecutorPlugin):
    """Makes the executor known to LocalStack as `process`."""

    name = "process"

    def load(self, *_args, **_kwargs):
        from .executor import ProcessExecutor

        return ProcessExecutor


@hooks.on_infra_start(should_load=lambda: bool(config.DYNAMODB_LOCAL_PORT))
def use_running_engine() -> None:
    """Replaces the method that downloads and starts DynamoDB Local; the provider stays as it is."""
    from localstack.services.dynamodb.server import DynamodbServer

    DynamodbServer.start_dynamodb = lambda _server: True


@hooks.on_infra_start()
def keep_objects_apart() -> None:
    """Keeps S3's objects under TMPDIR, like all else, and not in one folder of the machine."""
    from localstack.services.s3 import provider

    provider.DEFAULT_S3_TMP_DIR = f"{tempfile.gettempdir()}/s3"
