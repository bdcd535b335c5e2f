"""Deploys the stack with the stock SAM CLI; asks for its settings the first time and saves them.

The answers are saved in infra/samconfig.toml, which sam reads, except for the webhook: anyone who
knows its address may post there. It never appears on a command line either.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import boto3
import tomlkit
import yaml
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

ROOT = Path(__file__).resolve().parent.parent
TEMPLATE = ROOT / "infra" / "template.yaml"
CONFIG = ROOT / "infra" / "samconfig.toml"
BUILT = ROOT / "target" / "lambda"
FUNCTIONS = ("dispatch", "poll-status", "stop", "start", "publish")
#: Maps an ELF header's machine number to the matching value of the parameter Architecture.
MACHINES = {0x3E: "x86_64", 0xB7: "arm64"}


class DeployError(Exception):
    """Why the stack cannot be deployed, in one line."""


def machine(binary: Path) -> str:
    """Returns the processor that a binary was built for."""
    try:
        header = binary.open("rb").read(20)
    except FileNotFoundError:
        raise DeployError(f"{shown(binary)} is missing: run `make build` first") from None
    if len(header) < 20 or header[:4] != b"\x7fELF":
        raise DeployError(f"{shown(binary)} is not a Linux program: run `make build` first")
    order = "<" if header[5] == 1 else ">"
    (number,) = struct.unpack_from(order + "H", header, 18)
    if number not in MACHINES:
        raise DeployError(
            f"{shown(binary)} is for a processor that Lambda does not have (ELF machine {number})"
        )
    return MACHINES[number]


def built_for(folder: Path) -> str:
    """Returns the processor that all functions were built for."""
    machines = {name: machine(folder / name / "bootstrap") for name in FUNCTIONS}
    if len(set(machines.values())) > 1:
        each = ", ".join(f"{name} for {what}" for name, what in machines.items())
        raise DeployError(
            f"the functions were built for different processors ({each}): run `make build`"
        )
    return machines[FUNCTIONS[0]]


def check_architecture(built: str, wanted: str) -> None:
    """Rejects binaries that the deployed functions could not run."""
    if built != wanted:
        raise DeployError(
            f"the functions were built for {built}, but the parameter Architecture is {wanted}: "
            f"run `make build ARCH={wanted}`, or set Architecture={built} in {shown(CONFIG)}"
        )


def shown(path: Path) -> str:
    """Formats a path relative to the checkout's root if it is inside."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def declared() -> dict[str, dict]:
    """Returns the template's parameters."""

    class Loader(yaml.SafeLoader):
        """Ignores CloudFormation's own tags."""

    Loader.add_multi_constructor("!", lambda *_: None)
    return yaml.load(TEMPLATE.read_text(), Loader)["Parameters"]


def read_config(path: Path) -> tomlkit.TOMLDocument:
    """Reads the settings that earlier deployments saved."""
    if not path.exists():
        return tomlkit.document()
    try:
        return tomlkit.parse(path.read_text())
    except tomlkit.exceptions.ParseError as error:
        raise DeployError(f"{shown(path)} cannot be read: {error}") from None


def remembered(config: tomlkit.TOMLDocument) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the saved arguments of `sam deploy`, and the template's parameters among them."""
    given = config.get("default", {}).get("deploy", {}).get("parameters", {})
    overrides = given.get("parameter_overrides", [])
    if not isinstance(overrides, list):
        raise DeployError(f'{shown(CONFIG)}: parameter_overrides must be a list of "Name=value"')
    pairs = (str(one).partition("=") for one in overrides)
    return dict(given), {name: value for name, _, value in pairs}


def ask(question: str, default: str, parameter: dict | None = None, secret: bool = False) -> str:
    """Asks until the answer fits the template's parameter. An empty answer means the default."""
    read = getpass.getpass if secret and sys.stdin.isatty() else input
    while True:
        answer = read(f"{question} [{default or 'none'}]: ").strip() or default
        if parameter is None or re.fullmatch(parameter["AllowedPattern"], answer):
            return "" if answer == "none" else answer
        print(f"  It {parameter['ConstraintDescription'].strip()}")


def guide(built: str) -> str | None:
    """Asks for the settings and saves them. Returns the webhook, or None to leave it unchanged."""
    config = read_config(CONFIG)
    given, overrides = remembered(config)
    parameters = declared()
    print("A few questions; Enter accepts what is in brackets. Other settings are described in")
    print(f"{shown(TEMPLATE)} under Parameters, and go into {shown(CONFIG)}.\n")
    stack = ask(
        "Name of the stack",
        given.get("stack_name", "offhours"),
        {
            # A rule's name has at most 64 characters, and S-webhook-digest is one. The bus is named
            # like the stack: `default` is every account's own, and `none` means that there is none.
            "AllowedPattern": "(?!(default|none)$)[a-zA-Z][a-zA-Z0-9-]{1,48}",
            "ConstraintDescription": "must be a letter and 1 to 48 letters, digits and hyphens, "
            "and neither default nor none.",
        },
    )
    region = ask(
        "AWS region",
        given.get("region")
        or os.environ.get("AWS_REGION")
        or os.environ.get("AWS_DEFAULT_REGION")
        or "eu-central-1",
    )
    overrides["Architecture"] = built
    overrides["AlertEmail"] = ask(
        "E-mail address for alerts",
        overrides.get("AlertEmail", ""),
        optional(parameters["AlertEmail"]),
    )
    again = "stack_name" in given
    webhook = ask(
        "Webhook for alerts (not shown)",
        "as it is" if again else "",
        optional(parameters["WebhookUrl"], "as it is"),
        secret=True,
    )
    table = config.setdefault("default", tomlkit.table()).setdefault("deploy", tomlkit.table())
    table.setdefault("parameters", tomlkit.table()).update(
        {
            "stack_name": stack,
            "region": region,
            "parameter_overrides": [f"{name}={value}" for name, value in overrides.items()],
        }
    )
    config.setdefault("version", 0.1)
    CONFIG.write_text(tomlkit.dumps(config))
    return None if webhook == "as it is" else webhook


def optional(parameter: dict, *words: str) -> dict:
    """Returns the parameter, which now also accepts `none` and these words."""
    allowed = "|".join([parameter["AllowedPattern"], "none", *words])
    return {**parameter, "AllowedPattern": allowed}


def deploy(overrides: dict[str, str], webhook: str | None) -> int:
    """Runs `sam deploy`. The stack keeps the value of a parameter that is not given."""
    if webhook is not None:
        overrides = {**overrides, "WebhookUrl": webhook}
    confirm = "--confirm-changeset" if sys.stdin.isatty() else "--no-confirm-changeset"
    with tempfile.TemporaryDirectory() as folder:
        # No other user may enter the folder. JSON is valid YAML, which sam expects from the suffix.
        file = Path(folder) / "parameters.yaml"
        file.write_text(json.dumps(overrides))
        command = ["sam", "deploy", "--template-file", str(TEMPLATE), "--config-file", str(CONFIG)]
        command += ["--capabilities", "CAPABILITY_IAM", "--resolve-s3", confirm]
        command += ["--no-fail-on-empty-changeset", "--parameter-overrides", f"file://{file}"]
        result = subprocess.run(command, check=False, cwd=ROOT).returncode
    if result != 0:
        given, _ = remembered(read_config(CONFIG))
        stack, region = given.get("stack_name", ""), given.get("region")
        status = status_of(stack, region, given.get("profile"))
        if status in ADVICE:
            raise DeployError(ADVICE[status].format(stack=stack, region=region))
    return result


REPEAT = """\
{stack} could not be created. CloudFormation accepts nothing for it until it is deleted:

  .build/bin/sam delete --stack-name {stack} --region {region}

Its four tables may be left. Those of an earlier stack hold original sizes: docs/operating.md says
under "Remove" how to import them. If there was none, they are protected and empty. Mend the cause,
then run:

  for table in schedules accounts resources history; do
    aws dynamodb update-table --region {region} --table-name {stack}-$table \\
      --no-deletion-protection-enabled
    aws dynamodb wait table-exists --region {region} --table-name {stack}-$table
    aws dynamodb delete-table --region {region} --table-name {stack}-$table
  done
  make deploy"""

FINISH = """\
{stack} could not be deleted completely, and CloudFormation accepts nothing for it until it is.
Its tables hold original sizes: keep them. A policy that is still attached to people keeps a stack
from being deleted; detach it, then run:

  .build/bin/sam delete --stack-name {stack} --region {region}

docs/operating.md says under "Remove" how to import the tables into a new stack."""

#: What to do about a stack that accepts no update, by its status.
ADVICE = {
    "ROLLBACK_COMPLETE": REPEAT,
    "ROLLBACK_FAILED": REPEAT,
    "CREATE_FAILED": REPEAT,
    "DELETE_FAILED": FINISH,
}


def status_of(stack: str, region: str | None, profile: str | None) -> str | None:
    """Returns the status of a stack, or None if there is none or AWS does not say."""
    session = boto3.Session(profile_name=profile, region_name=region)
    client = session.client("cloudformation", config=Config(connect_timeout=5, read_timeout=10))
    try:
        return client.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]
    except (BotoCoreError, ClientError):
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--guided", action="store_true", help="ask again")
    arguments = parser.parse_args()
    built = built_for(BUILT)
    given, _ = remembered(read_config(CONFIG))
    webhook = guide(built) if arguments.guided or "stack_name" not in given else None
    _, overrides = remembered(read_config(CONFIG))
    overrides.setdefault("Architecture", declared()["Architecture"]["Default"])
    check_architecture(built, overrides["Architecture"])
    return deploy(overrides, webhook)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DeployError as error:
        sys.exit(f"error: {error}")
    except (EOFError, KeyboardInterrupt):
        sys.exit("\nerror: nothing was deployed")
