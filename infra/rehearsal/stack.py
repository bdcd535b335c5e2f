"""One stack: deploys it, invokes its functions, and reads its logs and tables."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy import DeployError, built_for

from .emulator import ROOT, Emulator

FUNCTIONS = ("dispatch", "stop", "start", "poll-status")

CHECKOUT = Path(__file__).resolve().parents[2]
CRATES = CHECKOUT / "crates"
BUILT = CHECKOUT / "target" / "lambda"

TOKEN_PATH = "/offhours"
"""The path of the tokens, which all stacks on one emulator share."""


class Failed(Exception):
    """A command or an invocation failed; the message has its output."""


def deploy(
    emulator: Emulator, sam: Path, template: Path, name: str, parameters: dict[str, str]
) -> Stack:
    """Deploys a template with the stock SAM CLI and waits until the stack is up."""
    command = [
        str(sam),
        "deploy",
        "--template-file",
        str(template),
        "--stack-name",
        name,
    ]
    command += [
        "--resolve-s3",
        "--no-confirm-changeset",
        "--no-fail-on-empty-changeset",
    ]
    command += ["--capabilities", "CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"]
    command += [
        "--parameter-overrides",
        *(f"{key}={value}" for key, value in parameters.items()),
    ]
    run(command, for_sam(emulator))
    return Stack(emulator, name)


def parameters(clouds: str, **others: str) -> dict[str, str]:
    """Returns the template's parameters for the functions as built, with both clouds at one
    address."""
    try:
        architecture = built_for(BUILT)
    except DeployError as error:
        raise Failed(str(error)) from None
    ours = {"Architecture": architecture, "TokenPath": TOKEN_PATH}
    return ours | {"DigitalOceanUrl": clouds, "HetznerUrl": clouds} | others


def for_sam(emulator: Emulator) -> dict[str, str]:
    """Returns the environment in which the SAM CLI finds an emulator and keeps its state in the
    checkout."""
    notes = str(CHECKOUT / "target" / "sam")
    return emulator.environment() | {"SAM_CLI_TELEMETRY": "0", "__SAM_CLI_APP_DIR": notes}


def run(command: list[str], environment: dict[str, str], stdin: str | None = None) -> str:
    """Runs a command to completion. Returns its standard output."""
    done = subprocess.run(
        command,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip()
        raise Failed(f"{Path(command[0]).name} ended with {done.returncode}:\n{said}")
    return done.stdout


def timer(short: str) -> Any:
    """Returns the event of a function's timer, as committed beside the function."""
    return json.loads((CRATES / short / "events" / "timer.json").read_text())


@dataclass(frozen=True)
class Line:
    """One line that a function logged."""

    at: float
    """Seconds since 1970, according to the log service."""
    function: str
    fields: dict[str, Any]

    @property
    def message(self) -> str:
        """The line's message."""
        return str(self.fields.get("message", ""))


@dataclass(frozen=True)
class Stack:
    """A deployed stack."""

    emulator: Emulator
    name: str

    def function(self, short: str) -> str:
        """Returns a function's full name."""
        return f"{self.name}-{short}"

    def outputs(self) -> dict[str, str]:
        """Returns the stack's outputs."""
        described = self.emulator.client("cloudformation").describe_stacks(StackName=self.name)
        outputs = described["Stacks"][0].get("Outputs", [])
        return {output["OutputKey"]: output["OutputValue"] for output in outputs}

    def invoke(self, short: str, event: Any, key: tuple[str, str] = ROOT) -> Any:
        """Invokes a function and waits for its response."""
        answer = self.emulator.client("lambda", key).invoke(
            FunctionName=self.function(short), Payload=json.dumps(event).encode()
        )
        said = json.loads(answer["Payload"].read() or b"null")
        if "FunctionError" in answer:
            raise Failed(f"{self.function(short)}: {said}")
        return said

    def rule_of(self, short: str) -> tuple[str, str]:
        """Returns the name and the schedule of the rule that invokes a function."""
        events = self.emulator.client("events")
        configuration = self.emulator.client("lambda").get_function_configuration(
            FunctionName=self.function(short)
        )
        arn = configuration["FunctionArn"]
        (rule,) = events.list_rule_names_by_target(TargetArn=arn)["RuleNames"]
        return rule, events.describe_rule(Name=rule)["ScheduleExpression"]

    def lines(self, short: str, since: float = 0) -> list[Line]:
        """Returns the lines a function has logged since an instant, oldest first."""
        logs = self.emulator.client("logs")
        pages = logs.get_paginator("filter_log_events").paginate(
            logGroupName=f"/aws/lambda/{self.function(short)}",
            startTime=int(since * 1000),
        )
        events = [event for page in pages for event in page["events"]]
        lines = []
        for event in sorted(events, key=lambda event: event["timestamp"]):
            for text in event["message"].splitlines():
                fields = _fields(text)
                if fields is not None:
                    lines.append(Line(event["timestamp"] / 1000, short, fields))
        return lines

    def items(self, table: str) -> list[dict[str, Any]]:
        """Returns all items of one of the four tables."""
        pages = self.emulator.client("dynamodb").get_paginator("scan")
        name = f"{self.name}-{table}"
        found = pages.paginate(TableName=name, ConsistentRead=True)
        return [item for page in found for item in page["Items"]]


def _fields(text: str) -> dict[str, Any] | None:
    """Parses one of our log lines. Returns None for the platform's own."""
    try:
        fields = json.loads(text)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None
