"""Runs a function's bootstrap as a process, where LocalStack would run a container."""

from __future__ import annotations

import os
import platform
import tempfile
from pathlib import Path

from localstack import config
from localstack.aws.api.lambda_ import PackageType
from localstack.services.lambda_.invocation.executor_endpoint import StatusErrorException
from localstack.services.lambda_.invocation.lambda_models import FunctionVersion, InvocationResult
from localstack.services.lambda_.invocation.runtime_executor import (
    LambdaRuntimeException,
    RuntimeExecutor,
)

from .runtime import LOOPBACK, InitError, Invocation, Runtime

MACHINES = {"x86_64": "x86_64", "aarch64": "arm64"}
"""Maps the kernel's name of a processor to Lambda's."""

OF_CONTAINERS = "LOCALSTACK_"
"""Prefix of the settings for the program that starts a function in LocalStack's containers."""


class ProcessExecutor(RuntimeExecutor):
    """One execution environment: runs a bootstrap, and starts a new one after a failure."""

    def __init__(self, id: str, function_version: FunctionVersion) -> None:
        super().__init__(id=id, function_version=function_version)
        self._environment: dict[str, str] = {}
        self._output = Path(tempfile.gettempdir()) / f"function-{id}.log"
        self._runtime: Runtime | None = None

    def start(self, env_vars: dict[str, str]) -> None:
        ours = {
            name: str(value)
            for name, value in env_vars.items()
            if not name.startswith(OF_CONTAINERS)
        }
        self._environment = {"PATH": os.defpath} | ours | {"LAMBDA_TASK_ROOT": str(self._code())}
        self._start_runtime()

    def _code(self) -> Path:
        return self.function_version.config.code.get_unzipped_code_location()

    def _start_runtime(self) -> None:
        self._runtime = Runtime(self._code(), self._environment, self._output)
        try:
            self._runtime.wait_until_ready()
        except InitError as error:
            self._runtime.end()
            raise StatusErrorException(str(error), payload=error.payload) from error

    def invoke(self, payload: dict[str, str]) -> InvocationResult:
        if not self._runtime.is_running():
            self._runtime.end()
            self._start_runtime()
        settings = self.function_version.config
        invocation = Invocation(
            id=payload["invoke-id"],
            arn=payload["invoked-function-arn"],
            trace=payload["trace-id"],
            payload=payload["payload"].encode(),
            timeout=settings.timeout,
        )
        outcome = self._runtime.invoke(invocation)
        log = (
            f"START RequestId: {invocation.id} Version: {self.function_version.id.qualifier}\n"
            f"{outcome.log}"
            f"END RequestId: {invocation.id}\n"
            f"REPORT RequestId: {invocation.id}\tDuration: {outcome.seconds * 1000:.2f} ms\t"
            f"Memory Size: {settings.memory_size} MB\n"
        )
        return InvocationResult(invocation.id, outcome.payload, outcome.is_error, log)

    def stop(self) -> None:
        if self._runtime:
            self._runtime.end()
        self._output.unlink(missing_ok=True)

    def get_logs(self) -> str:
        return self._output.read_text(errors="replace") if self._output.exists() else ""

    def get_address(self) -> str:
        return LOOPBACK

    def get_endpoint_from_executor(self) -> str:
        return LOOPBACK

    def get_runtime_endpoint(self) -> str:
        # The program in a container reports to this address. Here, `invoke` returns the response.
        return f"http://{LOOPBACK}:{config.GATEWAY_LISTEN[0].port}"

    @classmethod
    def prepare_version(cls, function_version: FunctionVersion) -> None:
        settings = function_version.config
        name = function_version.id.function_name
        if settings.package_type != PackageType.Zip or not settings.runtime.startswith("provided"):
            raise LambdaRuntimeException(f"{name} cannot run as a process: not provided.* in a zip")
        machine = MACHINES.get(platform.machine())
        if settings.architectures != [machine]:
            wanted = ", ".join(settings.architectures)
            raise LambdaRuntimeException(f"{name} is for {wanted}; this machine is {machine}")
        settings.code.prepare_for_execution()

    @classmethod
    def cleanup_version(cls, function_version: FunctionVersion) -> None:
        """Does nothing: a version has only its unzipped code, which LocalStack removes."""
