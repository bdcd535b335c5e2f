"""`make deploy`: what it refuses, asks and saves. A fake `sam` records what it is given."""

import json
import os
import stat
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import tomlkit
import yaml
from template import ROOT

MACHINES = {"x86_64": 0x3E, "arm64": 0xB7}
FUNCTIONS = ("dispatch", "poll-status", "stop", "start", "publish")
ANSWERS = ["offhours", "eu-central-1", "ops@example.com", "https://hooks.example.com/secret"]


def elf(machine: int) -> bytes:
    """Returns the header of a little-endian 64-bit program."""
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    return identity + struct.pack("<HH", 2, machine) + bytes(44)


class Checkout:
    """A checkout with built functions, and a fake `sam` that records arguments and parameters."""

    def __init__(self, folder: Path):
        self.folder = folder
        (folder / "infra").mkdir()
        for name in ("deploy.py", "template.yaml"):
            (folder / "infra" / name).write_text((ROOT / "infra" / name).read_text())
        sam = folder / "bin" / "sam"
        sam.parent.mkdir()
        sam.write_text(
            f"#!{sys.executable}\n"
            "import json, os, sys\n"
            "file = sys.argv[-1].removeprefix('file://')\n"
            "noted = {'arguments': sys.argv[1:], 'parameters': open(file).read()}\n"
            f"open({str(folder / 'noted')!r}, 'w').write(json.dumps(noted))\n"
            "sys.exit(int(os.environ.get('SAM_ENDS_WITH', 0)))\n"
        )
        sam.chmod(sam.stat().st_mode | stat.S_IXUSR)

    def build(self, machine: int, *names: str):
        for name in names or FUNCTIONS:
            binary = self.folder / "target" / "lambda" / name / "bootstrap"
            binary.parent.mkdir(parents=True, exist_ok=True)
            binary.write_bytes(elf(machine))

    def deploy(
        self, *answers: str, guided: bool = False, **variables: str
    ) -> subprocess.CompletedProcess:
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        plain = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return subprocess.run(
            [sys.executable, "infra/deploy.py", *(["--guided"] if guided else [])],
            cwd=self.folder,
            env={**plain, "PATH": path, **variables},
            input="".join(answer + "\n" for answer in answers),
            capture_output=True,
            text=True,
            check=False,
        )

    def remember(self, **parameters: str):
        overrides = [f"{name}={value}" for name, value in parameters.items()]
        remembered = {"stack_name": "offhours", "region": "x", "parameter_overrides": overrides}
        config = {"version": 0.1, "default": {"deploy": {"parameters": remembered}}}
        self.config.write_text(tomlkit.dumps(config))

    @property
    def config(self) -> Path:
        return self.folder / "infra" / "samconfig.toml"

    @property
    def noted(self) -> dict | None:
        file = self.folder / "noted"
        return json.loads(file.read_text()) if file.exists() else None

    @property
    def given(self) -> dict[str, str]:
        return yaml.safe_load(self.noted["parameters"])


@pytest.fixture
def checkout(tmp_path) -> Checkout:
    return Checkout(tmp_path)


def refused(checkout: Checkout, *words: str):
    done = checkout.deploy()
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    for word in words:
        assert word in line, line
    assert checkout.noted is None


def test_what_was_not_built_is_not_deployed(checkout):
    checkout.build(MACHINES["arm64"], "dispatch", "stop", "start")
    refused(checkout, "target/lambda/poll-status/bootstrap is missing", "`make build`")


def test_what_is_not_a_program_is_not_deployed(checkout):
    checkout.build(MACHINES["arm64"])
    (checkout.folder / "target/lambda/stop/bootstrap").write_text("#!/bin/sh\n")
    refused(checkout, "target/lambda/stop/bootstrap is not a Linux program")


def test_functions_for_several_processors_are_not_deployed(checkout):
    checkout.build(MACHINES["x86_64"])
    checkout.build(MACHINES["arm64"], "start")
    refused(checkout, "start for arm64", "stop for x86_64")


def test_functions_for_a_processor_that_lambda_has_not_are_not_deployed(checkout):
    checkout.build(0xF3)
    refused(checkout, "ELF machine 243")


@pytest.mark.parametrize(("built", "wanted"), [("x86_64", "arm64"), ("arm64", "x86_64")])
def test_functions_for_another_processor_than_the_stacks_are_not_deployed(checkout, built, wanted):
    checkout.build(MACHINES[built])
    checkout.remember(Architecture=wanted)
    refused(checkout, f"built for {built}", f"Architecture is {wanted}", f"ARCH={wanted}")


def test_the_templates_own_processor_counts_where_none_is_remembered(checkout):
    checkout.build(MACHINES["arm64"])
    checkout.remember(LogLevel="debug")
    refused(checkout, "Architecture is x86_64")


def test_the_first_time_asks_and_remembers_all_but_the_webhook(checkout):
    checkout.build(MACHINES["arm64"])
    done = checkout.deploy(*ANSWERS)
    assert done.returncode == 0, done.stderr
    assert checkout.given == {
        "Architecture": "arm64",
        "AlertEmail": "ops@example.com",
        "WebhookUrl": "https://hooks.example.com/secret",
    }
    remembered = tomlkit.parse(checkout.config.read_text())["default"]["deploy"]["parameters"]
    assert remembered == {
        "stack_name": "offhours",
        "region": "eu-central-1",
        "parameter_overrides": ["Architecture=arm64", "AlertEmail=ops@example.com"],
    }


def test_the_webhook_is_on_no_command_line_in_no_file_and_not_shown(checkout):
    checkout.build(MACHINES["arm64"])
    done = checkout.deploy(*ANSWERS)
    shown = done.stdout + done.stderr
    secret = "hooks.example.com"
    assert secret not in json.dumps(checkout.noted["arguments"])
    assert secret not in shown
    assert secret not in checkout.config.read_text()
    assert not Path(checkout.noted["arguments"][-1].removeprefix("file://")).exists()


def test_enter_takes_what_is_proposed(checkout):
    checkout.build(MACHINES["x86_64"])
    assert checkout.deploy("", "", "", "").returncode == 0
    assert checkout.given == {"Architecture": "x86_64", "AlertEmail": "", "WebhookUrl": ""}


def test_an_answer_that_the_template_would_refuse_is_asked_again(checkout):
    checkout.build(MACHINES["x86_64"])
    done = checkout.deploy("off hours", "night", "", "nobody", "", "http://x", "")
    assert done.returncode == 0, done.stderr
    assert "must be empty or one e-mail address" in done.stdout
    assert "must be empty or an address that begins with https://" in done.stdout
    assert "--stack-name" not in checkout.noted["arguments"]
    assert 'stack_name = "night"' in checkout.config.read_text()


def test_later_nothing_is_asked_and_the_webhook_stays(checkout):
    checkout.build(MACHINES["arm64"])
    checkout.deploy(*ANSWERS)
    done = checkout.deploy()
    assert done.returncode == 0, done.stderr
    assert checkout.given == {"Architecture": "arm64", "AlertEmail": "ops@example.com"}


def test_asked_again_the_webhook_can_be_taken_away_or_kept(checkout):
    checkout.build(MACHINES["arm64"])
    checkout.deploy(*ANSWERS)
    checkout.deploy("", "", "", "none", guided=True)
    assert checkout.given["WebhookUrl"] == ""
    checkout.deploy("", "", "none", "", guided=True)
    assert checkout.given == {"Architecture": "arm64", "AlertEmail": ""}


def test_what_else_was_set_is_kept(checkout):
    checkout.build(MACHINES["x86_64"])
    checkout.remember(Architecture="x86_64", LogLevel="debug", TokenPath="/a=b")
    assert checkout.deploy("", "", "", "", guided=True).returncode == 0
    assert checkout.given["LogLevel"] == "debug"
    assert checkout.given["TokenPath"] == "/a=b"


@contextmanager
def cloudformation(status: str) -> Iterator[dict[str, str]]:
    """Answers for the stack's status as AWS does; yields the variables that lead there."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["content-length"])).decode()
            assert "Action=DescribeStacks" in asked, asked
            assert "StackName=offhours" in asked, asked
            space = "http://cloudformation.amazonaws.com/doc/2010-05-15/"
            stack = (
                "<member><StackName>offhours</StackName>"
                f"<CreationTime>2026-11-20T08:00:00Z</CreationTime>"
                f"<StackStatus>{status}</StackStatus></member>"
            )
            body = (
                f'<DescribeStacksResponse xmlns="{space}"><DescribeStacksResult>'
                f"<Stacks>{stack}</Stacks></DescribeStacksResult></DescribeStacksResponse>"
            ).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keeps the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "SAM_ENDS_WITH": "1",
        }
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def failing(checkout, status: str) -> str:
    """Returns what is said of a deployment that fails, and leaves the stack in this status."""
    checkout.build(MACHINES["x86_64"])
    checkout.deploy(*ANSWERS)
    with cloudformation(status) as variables:
        done = checkout.deploy(**variables)
    assert done.returncode == 1
    return done.stderr


def test_a_first_deployment_that_failed_can_be_repeated_as_is_said(checkout):
    said = failing(checkout, "ROLLBACK_COMPLETE")
    assert "sam delete --stack-name offhours --region eu-central-1" in said
    assert "delete-table --region eu-central-1 --table-name offhours-$table" in said


def test_the_tables_of_a_stack_whose_deletion_failed_are_to_be_kept(checkout):
    said = failing(checkout, "DELETE_FAILED")
    assert "sam delete --stack-name offhours --region eu-central-1" in said
    assert "import the tables" in said
    assert "delete-table" not in said


def test_an_update_that_failed_leaves_the_stack_and_its_tables_alone(checkout):
    assert failing(checkout, "UPDATE_ROLLBACK_COMPLETE") == ""


@pytest.mark.parametrize("name", ["default", "none", "s" * 50])
def test_a_name_that_some_resource_could_not_have_is_asked_again(checkout, name):
    checkout.build(MACHINES["x86_64"])
    done = checkout.deploy(name, "s" * 49, "", "", "")
    assert done.returncode == 0, done.stderr
    assert "must be a letter and 1 to 48" in done.stdout
    assert f'stack_name = "{"s" * 49}"' in checkout.config.read_text()


def test_a_broken_configuration_is_refused_in_one_line(checkout):
    checkout.build(MACHINES["x86_64"])
    checkout.config.write_text("[default")
    refused(checkout, "infra/samconfig.toml cannot be read")


def test_overrides_as_sam_itself_writes_them_are_refused_in_one_line(checkout):
    checkout.build(MACHINES["x86_64"])
    checkout.remember()
    checkout.config.write_text(
        checkout.config.read_text().replace("[]", '"Architecture=\\"arm64\\""')
    )
    refused(checkout, 'parameter_overrides must be a list of "Name=value"')


def test_no_answer_deploys_nothing(checkout):
    checkout.build(MACHINES["x86_64"])
    done = checkout.deploy("offhours")
    assert done.returncode == 1
    assert "nothing was deployed" in done.stderr
    assert checkout.noted is None
    assert not checkout.config.exists()
