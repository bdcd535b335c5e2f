"""LocalStack in containers, with a fake `docker` that records what it is asked to do."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest
import yaml
from rehearsal import containers
from rehearsal.stack import Failed

WORK = ["up", "down"]


class Docker:
    """A program `docker` that records its commands and fails at some of them."""

    def __init__(self, folder: Path) -> None:
        self.notes = folder / "notes"
        self.failing = folder / "failing"
        program = folder / "docker"
        program.write_text(
            f"#!{sys.executable}\n"
            "import json, os, pathlib, sys\n"
            "command = next(one for one in sys.argv if one in ('version', 'up', 'down'))\n"
            "ours = {k: v for k, v in os.environ.items() if k.startswith('OFFHOURS_')}\n"
            f"with open({str(self.notes)!r}, 'a') as notes:\n"
            "    print(json.dumps([command, ours]), file=notes)\n"
            f"failing = pathlib.Path({str(self.failing)!r})\n"
            "if failing.exists() and command in failing.read_text().split():\n"
            "    sys.exit(f'{command} failed')\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def fail_at(self, *commands: str) -> None:
        self.failing.write_text(" ".join(commands))

    def noted(self) -> list[tuple[str, dict[str, str]]]:
        """Returns its commands, except for the initial question of its version."""
        lines = [json.loads(line) for line in self.notes.read_text().splitlines()]
        assert lines[0][0] == "version"
        return [(command, environment) for command, environment in lines[1:]]

    def commands(self) -> list[str]:
        return [command for command, _ in self.noted()]


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Docker:
    monkeypatch.setenv("PATH", str(tmp_path))
    return Docker(tmp_path)


def use(programs: Path) -> None:
    with containers.localstack(programs):
        pass


def test_both_listen_on_free_ports(docker: Docker, tmp_path: Path) -> None:
    with containers.localstack(tmp_path) as places:
        pass
    (up, environment), (down, _) = docker.noted()
    assert [up, down] == WORK
    ports = {environment["OFFHOURS_LOCALSTACK_PORT"], environment["OFFHOURS_SIMULATOR_PORT"]}
    addresses = {places.emulator.url, places.simulator.url}
    assert addresses == {f"http://127.0.0.1:{port}" for port in ports}
    assert len(ports - {"4566", "8100"}) == 2


def test_what_an_unfinished_start_left_is_removed(docker: Docker, tmp_path: Path) -> None:
    docker.fail_at("up")
    with pytest.raises(Failed, match="up failed"):
        use(tmp_path)
    assert docker.commands() == WORK


def test_containers_that_cannot_be_removed_are_only_a_warning(
    docker: Docker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.fail_at("down")
    use(tmp_path)
    assert "warning: containers may be left" in capsys.readouterr().err
    with pytest.raises(RuntimeError, match="the verdict"), containers.localstack(tmp_path):
        raise RuntimeError("the verdict")


def test_without_docker_it_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Failed, match="needs Docker with Compose"):
        use(tmp_path)


def test_without_compose_it_says_what_is_missing(docker: Docker, tmp_path: Path) -> None:
    docker.fail_at("version")
    with pytest.raises(Failed, match="needs Docker with Compose"):
        use(tmp_path)
    assert docker.commands() == []


def test_elsewhere_than_on_linux_it_says_so(
    docker: Docker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(Failed, match="needs Linux"):
        use(tmp_path)


def test_the_functions_network_has_a_name_of_its_own() -> None:
    compose = yaml.safe_load(containers.COMPOSE.read_text())
    network = compose["networks"]["default"]["name"]
    assert compose["services"]["localstack"]["environment"]["LAMBDA_DOCKER_NETWORK"] == network


def test_no_service_of_localstack_is_shut_out() -> None:
    # The topic mails by SES once an address is subscribed.
    localstack = yaml.safe_load(containers.COMPOSE.read_text())["services"]["localstack"]
    assert "SERVICES" not in localstack["environment"]


def test_localstack_has_time_to_end_the_functions_containers() -> None:
    localstack = yaml.safe_load(containers.COMPOSE.read_text())["services"]["localstack"]
    assert localstack["stop_grace_period"] == "1m"
