"""`infra/verify.py` removes what it made, and nothing else. AWS and sam are fakes."""

import subprocess
import sys
from pathlib import Path

import boto3
import pytest
import verify
from botocore.exceptions import ClientError

TABLES = [f"offhours-try-{name}" for name in verify.TABLES]


class Missing(ClientError):
    """What an API answers about something that is not there."""

    def __init__(self, code: str):
        super().__init__({"Error": {"Code": code, "Message": "there is none"}}, "Describe")


class Cloud:
    """An AWS account with one stack, or none, and with tables. It notes what changes it."""

    def __init__(self, status: str | None = None, tables: tuple[str, ...] = ()):
        self.status = status
        self.tables = list(tables)
        self.changes: list[str] = []
        #: The status in which the creation of a stack ends.
        self.creates = "CREATE_COMPLETE"

    def run(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        """Runs sam, or the command `offhours`."""
        done = 0
        if Path(command[0]).name == "sam":
            self.changes.append(" ".join(command[1:]))
            if command[1] == "deploy":
                self.status, done = self.creates, int(self.creates != "CREATE_COMPLETE")
                self.tables = list(TABLES)
            else:
                self.status = None
        return subprocess.CompletedProcess(command, done, "", "")

    def client(self, service: str, **_: object) -> "Client":
        return Client(self, service)


class Client:
    """One service of the account, as far as the script asks it."""

    class exceptions:
        ResourceNotFoundException = Missing

    def __init__(self, cloud: Cloud, service: str):
        self.cloud = cloud
        self.service = service

    def __getattr__(self, operation: str):
        def refuse(**_: object):
            raise Missing("AccessDenied")

        return refuse

    def describe_stacks(self, **_: object) -> dict:
        if self.cloud.status is None:
            raise Missing("ValidationError")
        return {"Stacks": [{"StackStatus": self.cloud.status, "Outputs": []}]}

    def describe_stack_events(self, **_: object) -> dict:
        return {"StackEvents": []}

    def describe_table(self, TableName: str) -> dict:
        if TableName not in self.cloud.tables:
            raise Missing("ResourceNotFoundException")
        return {"Table": {"DeletionProtectionEnabled": True}}

    def update_table(self, TableName: str, **_: object) -> None:
        self.cloud.changes.append(f"unprotect {TableName}")

    def get_waiter(self, _: str) -> "Client":
        return self

    def wait(self, **_: object) -> None:
        pass

    def delete_table(self, TableName: str) -> None:
        self.cloud.changes.append(f"delete {TableName}")
        self.cloud.tables.remove(TableName)


@pytest.fixture
def verified(monkeypatch):
    """A function that runs the script over an account, and returns how it ended."""

    def run(cloud: Cloud, *arguments: str) -> int:
        session = boto3.Session()
        session.client = cloud.client
        monkeypatch.setattr(verify.boto3, "Session", lambda **_: session)
        monkeypatch.setattr(verify.subprocess, "run", cloud.run)
        monkeypatch.setattr(verify, "built_for", lambda _: "arm64")
        # Before and after are what is tried here; the steps between take AWS.
        monkeypatch.setattr(verify, "BEFORE", (verify.deployment,))
        monkeypatch.setattr(verify, "STEPS", ())
        monkeypatch.setattr(sys, "argv", ["verify.py", "--yes", *arguments])
        return verify.main()

    return run


@pytest.mark.parametrize(
    "status", ["CREATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE"]
)
def test_a_stack_that_was_there_before_is_left_alone(verified, status, capsys):
    cloud = Cloud(status, tuple(TABLES))
    assert verified(cloud) == 1
    assert cloud.changes == []
    assert status in capsys.readouterr().out


def test_the_tables_of_an_earlier_stack_are_left_alone(verified, capsys):
    cloud = Cloud(None, (TABLES[2],))
    assert verified(cloud) == 1
    assert cloud.changes == []
    assert TABLES[2] in capsys.readouterr().out


def test_what_it_made_is_removed(verified):
    cloud = Cloud()
    assert verified(cloud) == 0
    assert (cloud.status, cloud.tables) == (None, [])
    assert [one.split()[0] for one in cloud.changes[:2]] == ["deploy", "delete"]


def test_a_stack_that_could_not_be_created_is_removed_with_its_tables(verified):
    cloud = Cloud()
    cloud.creates = "ROLLBACK_COMPLETE"
    assert verified(cloud) == 1
    assert (cloud.status, cloud.tables) == (None, [])


def test_the_tables_of_a_stack_that_stands_are_left_alone(verified, monkeypatch):
    cloud = Cloud()
    run = cloud.run
    monkeypatch.setattr(
        cloud,
        "run",
        lambda command, **more: (
            subprocess.CompletedProcess(command, 1)
            if command[1] == "delete"
            else run(command, **more)
        ),
    )
    assert verified(cloud) == 1
    assert (cloud.status, cloud.tables) == ("CREATE_COMPLETE", TABLES)


def test_sam_works_under_the_profile_that_was_chosen(verified, monkeypatch):
    cloud = Cloud()
    monkeypatch.setattr(boto3.Session, "profile_name", "sandbox")
    assert verified(cloud) == 0
    assert all("--profile sandbox" in one for one in cloud.changes if "--stack-name" in one)
