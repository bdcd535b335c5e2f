"""Tries the stack on AWS, as docs/verify-on-aws.md describes.

Deploys a stack of its own, looks at what only AWS can show, and removes everything again. Asks
before each step that costs something or deletes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from deploy import BUILT, ROOT, TEMPLATE, DeployError, built_for

TABLES = ("schedules", "accounts", "resources", "history")
FUNCTIONS = ("dispatch", "poll-status", "stop", "start")


class Wrong(Exception):
    """What was found is not what was expected."""


class LeftOut(Exception):
    """The step could not be tried, or the person did not want it."""


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Wrong(otherwise)


@dataclass
class Trial:
    """One stack on AWS, or on an emulator."""

    stack: str
    region: str
    email: str
    yes: bool
    wait: float
    session: boto3.Session
    began: float = field(default_factory=time.time)
    made: bool = False
    """Whether it has begun to create the stack: no other stack is removed."""

    def client(self, service: str) -> Any:
        return self.session.client(service, region_name=self.region)

    @property
    def on_emulator(self) -> bool:
        return "AWS_ENDPOINT_URL" in os.environ

    def ask(self, question: str) -> None:
        """Goes on only if the person says yes."""
        if not self.yes and input(f"  {question} [y/N] ").strip().lower() not in ("y", "yes"):
            raise LeftOut("not wanted")

    def only_on_aws(self) -> None:
        if self.on_emulator:
            raise LeftOut("only AWS can show it")

    def person_saw(self, question: str) -> None:
        """Leaves to a person what no program can see."""
        if self.yes:
            raise LeftOut("nobody to look at it")
        expect(input(f"  {question} [y/N] ").strip().lower() in ("y", "yes"), "it was not seen")

    def until(self, seconds: float, found: Callable[[], Any], what: str) -> Any:
        """Waits until something is found."""
        end = time.monotonic() + seconds
        while True:
            value = found()
            if value:
                return value
            expect(time.monotonic() < end, f"{what} within {seconds:.0f} s")
            time.sleep(min(5.0, seconds / 10))

    def outputs(self) -> dict[str, str]:
        described = self.client("cloudformation").describe_stacks(StackName=self.stack)
        outputs = described["Stacks"][0].get("Outputs", [])
        return {one["OutputKey"]: one["OutputValue"] for one in outputs}

    def status(self) -> str | None:
        """Returns the status of the stack, or None if there is none."""
        try:
            described = self.client("cloudformation").describe_stacks(StackName=self.stack)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ValidationError":
                raise
            return None
        status = described["Stacks"][0]["StackStatus"]
        return None if status == "DELETE_COMPLETE" else status

    def tables(self) -> dict[str, Any]:
        """Returns those of the stack's tables that there are, by name."""
        dynamodb, found = self.client("dynamodb"), {}
        for name in (f"{self.stack}-{one}" for one in TABLES):
            with contextlib.suppress(dynamodb.exceptions.ResourceNotFoundException):
                found[name] = dynamodb.describe_table(TableName=name)["Table"]
        return found

    @property
    def profile(self) -> list[str]:
        """The option that chooses the profile of this session, for programs that are run."""
        chosen = self.session.profile_name
        return [] if chosen == "default" else ["--profile", chosen]

    def sam(self, *arguments: str) -> None:
        command = [str(Path(sys.executable).parent / "sam"), *arguments]
        command += ["--stack-name", self.stack, "--region", self.region, *self.profile]
        variables = {**os.environ, "SAM_CLI_TELEMETRY": "0"}
        done = subprocess.run(command, cwd=ROOT, env=variables, check=False)
        expect(done.returncode == 0, f"sam ended with {done.returncode}: see above")


def concurrency(trial: Trial) -> str:
    """AWS lets more than ten functions run at once."""
    trial.only_on_aws()
    limits = trial.client("lambda").get_account_settings()["AccountLimit"]
    allowed = limits["ConcurrentExecutions"]
    expect(allowed > 10, f"only {allowed}: more than three accounts at the providers have to wait")
    return str(allowed)


def deployment(trial: Trial) -> str:
    """The stack is created at the first attempt."""
    there = trial.status() or ", ".join(trial.tables())
    expect(not there, f"{trial.stack} exists already ({there}): choose another --stack")
    trial.ask(f"Deploy the stack {trial.stack} in {trial.region}? It costs about a cent an hour.")
    trial.made = True
    given = {"Architecture": built_for(BUILT), "AlertEmail": trial.email}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "parameters.yaml"
        file.write_text(json.dumps(given))
        trial.sam(
            *("deploy", "--template-file", str(TEMPLATE), "--resolve-s3"),
            *("--capabilities", "CAPABILITY_IAM", "--no-confirm-changeset"),
            *("--parameter-overrides", f"file://{file}"),
        )
    events = trial.client("cloudformation").describe_stack_events(StackName=trial.stack)
    failed = [one for one in events["StackEvents"] if "FAILED" in one["ResourceStatus"]]
    expect(not failed, f"{len(failed)} resources failed at first")
    return f"{len(trial.outputs())} outputs"


def subscription(trial: Trial) -> str:
    """The alert address is subscribed once it is confirmed."""
    trial.only_on_aws()
    if not trial.email:
        raise LeftOut("no --email")
    trial.person_saw("AWS has sent a mail with a link. Have you confirmed it?")
    return _subscribed(trial)


def _subscribed(trial: Trial) -> str:
    topic = trial.outputs()["AlertsTopic"]
    found = trial.client("sns").list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    pending = [one for one in found if one["SubscriptionArn"] == "PendingConfirmation"]
    expect(bool(found) and not pending, f"{len(pending)} of {len(found)} are not confirmed")
    return f"{len(found)} confirmed"


def alert(trial: Trial) -> str:
    """An event of the bus reaches the topic under the rule's role."""
    _tell(trial, 1)
    time.sleep(60 * trial.wait)
    left = _dead_letters(trial)
    expect(left == 0, f"{left} in the dead-letter queue: the rule may not publish to the topic")
    if trial.email and not trial.on_emulator:
        trial.person_saw("Did a mail with the text “verify 1” arrive?")
    return "no dead letters"


def burst(trial: Trial) -> str:
    """Forty alerts in a few seconds do not end the mail subscription."""
    trial.only_on_aws()
    if not trial.email:
        raise LeftOut("no --email")
    if trial.yes:
        raise LeftOut("the address is not confirmed")
    trial.ask(
        "Send forty alerts, and as many mails? If AWS ends the subscription, confirm it again."
    )
    for _ in range(4):
        _tell(trial, 10)
    time.sleep(90 * trial.wait)
    return _subscribed(trial)


def _tell(trial: Trial, count: int) -> None:
    entry = {"Source": "offhours", "DetailType": "Resource Orphaned", "EventBusName": trial.stack}
    entries = [
        {**entry, "Detail": json.dumps({"text": f"verify {number + 1}"})} for number in range(count)
    ]
    answer = trial.client("events").put_events(Entries=entries)
    expect(answer["FailedEntryCount"] == 0, f"the bus refused {answer['FailedEntryCount']}")


def _dead_letters(trial: Trial) -> int:
    sqs = trial.client("sqs")
    url = sqs.get_queue_url(QueueName=f"{trial.stack}-dead-letters")["QueueUrl"]
    wanted = ["ApproximateNumberOfMessages"]
    answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=wanted)
    return int(answer["Attributes"]["ApproximateNumberOfMessages"])


def ticks(trial: Trial) -> str:
    """The timers fire, and each tick logs a line with its level and time."""
    lines = trial.until(240 * max(trial.wait, 0.5), lambda: _lines(trial, "dispatch"), "no tick")
    for line in lines:
        expect(line.get("level") in ("INFO", "WARN"), f"a line of level {line.get('level')}")
        expect(bool(re.match(r"\d{4}-\d\d-\d\dT", line.get("timestamp", ""))), "no timestamp")
    return f"{len(lines)} lines, such as: {lines[-1]['message']}"


def _lines(trial: Trial, function: str) -> list[dict[str, Any]]:
    group = f"/aws/lambda/{trial.stack}-{function}"
    pages = trial.client("logs").get_paginator("filter_log_events").paginate(logGroupName=group)
    texts = [
        text for page in pages for one in page["events"] for text in one["message"].splitlines()
    ]
    found = []
    for text in texts:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and "message" in line:
            found.append(line)
    return found


def memory(trial: Trial) -> str:
    """Every run succeeds, within its memory and long before its timeout."""
    trial.only_on_aws()
    pattern = '{ $.type = "platform.report" }'
    logs = trial.client("logs")
    found = []
    for function in FUNCTIONS[:2]:
        group = f"/aws/lambda/{trial.stack}-{function}"
        pages = logs.get_paginator("filter_log_events").paginate(
            logGroupName=group, filterPattern=pattern
        )
        reports = [json.loads(one["message"])["record"] for page in pages for one in page["events"]]
        expect(bool(reports), f"{function} has no reports")
        failed = [one for one in reports if one["status"] != "success"]
        expect(not failed, f"{len(failed)} runs of {function} did not succeed")
        most = max(one["metrics"]["maxMemoryUsedMB"] for one in reports)
        longest = max(one["metrics"]["durationMs"] for one in reports)
        cold = max(one["metrics"].get("initDurationMs", 0) for one in reports)
        expect(most < 100, f"{function} needed {most} of 128 MB")
        expect(longest < 20_000, f"{function} took {longest:.0f} ms")
        times = f"at most {longest:.0f} ms, start {cold:.0f} ms"
        found.append(f"{function}: {len(reports)} runs, {most} MB, {times}")
    return "; ".join(found)


def dashboard(trial: Trial) -> str:
    """CloudWatch has accepted the dashboard."""
    name = f"{trial.stack}-{trial.region}"
    try:
        body = trial.client("cloudwatch").get_dashboard(DashboardName=name)["DashboardBody"]
    except ClientError:
        trial.only_on_aws()
        raise
    return f"{len(json.loads(body)['widgets'])} widgets"


def roles(trial: Trial) -> str:
    """poll-status may read a reading token and no acting one; it may write its state alone."""
    trial.only_on_aws()
    iam, cloudformation = trial.client("iam"), trial.client("cloudformation")
    found = cloudformation.describe_stack_resource(
        StackName=trial.stack, LogicalResourceId="PollStatusRole"
    )
    name = found["StackResourceDetail"]["PhysicalResourceId"]
    role = iam.get_role(RoleName=name)["Role"]["Arn"]
    partition, account = role.split(":")[1], role.split(":")[4]
    place = f"{trial.region}:{account}"
    parameter = f"arn:{partition}:ssm:{place}:parameter/{trial.stack}"
    accounts = f"arn:{partition}:dynamodb:{place}:table/{trial.stack}-accounts"
    cases = [
        ("ssm:GetParameter", f"{parameter}/reading/x", None, "allowed"),
        ("ssm:GetParameter", f"{parameter}/acting/x", None, "explicitDeny"),
        ("dynamodb:UpdateItem", accounts, "state", "allowed"),
        ("dynamodb:UpdateItem", accounts, "generation#000000000001", "implicitDeny"),
    ]
    for action, resource, partition_key, expected in cases:
        context = {
            "ContextKeyName": "dynamodb:LeadingKeys",
            "ContextKeyType": "stringList",
            "ContextKeyValues": [partition_key or ""],
        }
        answer = iam.simulate_principal_policy(
            PolicySourceArn=role,
            ActionNames=[action],
            ResourceArns=[resource],
            ContextEntries=[context] if partition_key else [],
        )
        said = answer["EvaluationResults"][0]["EvalDecision"]
        expect(said == expected, f"{action} of {partition_key or resource}: {said}")
    return f"{len(cases)} of {len(cases)} decisions"


def command(trial: Trial) -> str:
    """The `offhours` command finds the stack with these credentials."""
    program = ROOT / "target" / "debug" / "offhours"
    if not program.exists():
        raise LeftOut("target/debug/offhours is not built")
    variables = {
        **os.environ,
        "OFFHOURS_TABLE_PREFIX": f"{trial.stack}-",
        "AWS_REGION": trial.region,
    }
    variables.pop("OFFHOURS_DATA", None)
    asked = [str(program), "status", "-o", "json", *trial.profile]
    done = subprocess.run(asked, env=variables, capture_output=True, text=True, check=False)
    expect("cannot reach the store" not in done.stderr, done.stderr.strip())
    return f"`offhours status` ended with {done.returncode}"


def missing(trial: Trial) -> str:
    """An alarm goes off when dispatch does not run, and the failed runs are counted."""
    trial.only_on_aws()
    trial.ask("Stop dispatch for eight minutes, to see its alarm?")
    client, name = trial.client("lambda"), f"{trial.stack}-dispatch"
    client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
    try:

        def in_alarm() -> bool:
            alarms = trial.client("cloudwatch").describe_alarms(AlarmNames=[f"{name}-missing"])
            return alarms["MetricAlarms"][0]["StateValue"] == "ALARM"

        trial.until(9 * 60, in_alarm, "the alarm stayed quiet")
    finally:
        client.delete_function_concurrency(FunctionName=name)
    return "in ALARM"


def removal(trial: Trial) -> str:
    """Deleting the stack leaves its four tables, protected."""
    status = trial.status()
    if status is None:
        raise LeftOut("there is no stack")
    trial.ask(f"Delete the stack {trial.stack}?")
    trial.sam("delete", "--no-prompts")
    left = trial.tables()
    for name, table in left.items():
        if not trial.on_emulator:
            expect(table.get("DeletionProtectionEnabled") is True, f"{name} is not protected")
    # A creation that failed may have come to fewer.
    expect(len(left) == len(TABLES) or status != "CREATE_COMPLETE", f"only {', '.join(left)}")
    return f"{len(left)} tables are left"


def tables(trial: Trial) -> str:
    """The tables can be deleted as docs/operating.md says."""
    if status := trial.status():
        raise LeftOut(f"the stack is there, in {status}")
    left = trial.tables()
    if not left:
        raise LeftOut("there are none")
    trial.ask(f"Delete {', '.join(left)} for good?")
    dynamodb = trial.client("dynamodb")
    for table in left:
        dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
        dynamodb.get_waiter("table_exists").wait(TableName=table)
        dynamodb.delete_table(TableName=table)
    return "nothing is left but SAM's bucket"


BEFORE = (concurrency, deployment)
STEPS = (subscription, alert, burst, ticks, memory, dashboard, roles, command, missing)
AFTER = (removal, tables)


def attempt(step: Callable[[Trial], str], trial: Trial, report: list[str]) -> str:
    """Runs one step. Returns and reports how it ended."""
    print(f"\n{step.__doc__}", flush=True)
    try:
        word, text = "ok", step(trial)
    except Wrong as wrong:
        word, text = "FAILED", str(wrong)
    except LeftOut as why:
        word, text = "left out", str(why)
    except (BotoCoreError, ClientError, DeployError) as error:
        word, text = "FAILED", str(error)
    # The number of the AWS account is nobody's business.
    text = re.sub(r"\b\d{12}\b", "…", text)
    print(f"  {word}: {text}", flush=True)
    report.append(f"{word:8}  {step.__doc__}  {text}")
    return word


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stack", default="offhours-try", help="name of the stack to create")
    parser.add_argument("--region", default=os.environ.get("AWS_REGION", "eu-central-1"))
    parser.add_argument("--profile", default=os.environ.get("AWS_PROFILE"))
    parser.add_argument("--email", default="", help="address for the alerts, yours")
    parser.add_argument("--yes", action="store_true", help="ask nothing; leave out what to look at")
    parser.add_argument("--wait", type=float, default=1.0, help="factor for waits (tests: 0.05)")
    given = parser.parse_args()
    session = boto3.Session(profile_name=given.profile)
    trial = Trial(given.stack, given.region, given.email, given.yes, given.wait, session)
    report: list[str] = []
    words = []
    try:
        words += [attempt(step, trial, report) for step in BEFORE]
        if words[-1] == "ok":
            words += [attempt(step, trial, report) for step in STEPS]
    except KeyboardInterrupt:
        print("\n  interrupted: what was deployed is still to be removed", flush=True)
    if trial.made:
        words += [attempt(step, trial, report) for step in AFTER]
    where = "an emulator" if trial.on_emulator else f"AWS, {trial.region}"
    minutes = (time.time() - trial.began) / 60
    print(f"\nReport: {where}, {minutes:.0f} minutes\n")
    print("\n".join(report))
    return 1 if "FAILED" in words else 0


if __name__ == "__main__":
    sys.exit(main())
