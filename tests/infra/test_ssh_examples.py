"""The examples of SSH accounts: every script does what docs/ssh.md says, tested with fake tools."""

import base64
import os
import re
import shutil
import struct
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import tomlkit
from template import ROOT

EXAMPLES = ROOT / "examples" / "ssh"
SCRIPTS = ("offhours-gate", "wake-lan", "wake-hetzner", "ipmi", "k3s-node")
LIBRARY = "/usr/local/lib/offhours"
PASSWORD = 'p"a#ss wo\\rd'
SUCCEED = "exit 0"


class Host:
    """A host with the examples installed, whose tools record how they were called."""

    def __init__(self, folder: Path):
        self.bin = folder / "bin"
        self.library = folder / "lib"
        self.etc = folder / "etc"
        self.log = folder / "log"
        for path in (self.bin, self.library, self.etc):
            path.mkdir()
        self.log.touch()
        self.credentials = self.etc / "robot.curl"
        self.refused = folder / "state" / "robot-refused"
        self.passwords = self.etc / "ipmi"
        self.paths = {
            f"lib={LIBRARY}": f"lib={self.library}",
            "credentials=/etc/offhours/robot.curl": f"credentials={self.credentials}",
            "refused=/var/lib/offhours/robot-refused": f"refused={self.refused}",
            "passwords=/etc/offhours/ipmi": f"passwords={self.passwords}",
            "KUBECONFIG=/etc/offhours/kubeconfig": f"KUBECONFIG={self.etc}/kubeconfig",
        }
        for name in SCRIPTS:
            self.install(name)
        # Does what sudo does with a listed command.
        self.tool(
            "sudo", '[ "$1" = -n ] && shift\ncase "$1" in */systemctl) ;; *) exec "$@" ;; esac'
        )
        self.tool("sleep", SUCCEED)
        escaped = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
        self.credentials.write_text(f'user = "#ws+AbCdEfGh:{escaped}"\n')

    def install(self, name: str, **other: str) -> None:
        """Installs a script where the gate finds it, with this host's paths in it."""
        text = (EXAMPLES / name).read_text()
        text, found = re.subn(r"(?m)^PATH=.*$", f"PATH={self.bin}:/usr/bin:/bin", text)
        assert found == 1, f"{name} does not set PATH once"
        for written, here in self.paths.items():
            text = text.replace(written, here)
        for variable, value in other.items():
            text, found = re.subn(rf"(?m)^{variable}=.*$", f"{variable}={value}", text)
            assert found == 1, f"{name} does not set {variable} once"
        assert "/etc/offhours" not in re.sub(r"(?m)^#.*", "", text)
        (self.library / name).write_text(text)
        (self.library / name).chmod(0o755)

    def tool(self, name: str, script: str) -> None:
        """Installs a tool that records its arguments, one line per call, and runs a script."""
        path = self.bin / name
        note = f"{{ printf %s {name}; printf '\\t%s' \"$@\"; echo; }} >>'{self.log}'"
        path.write_text(f"#!/bin/sh\n{note}\n{script}\n")
        path.chmod(0o755)

    def run(self, name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [self.library / name, *arguments],
            env={"HOME": str(self.etc), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def code(self, name: str, *arguments: str) -> int:
        return self.run(name, *arguments).returncode

    def gate(self, words: str) -> subprocess.CompletedProcess:
        return self.run("offhours-gate", SSH_ORIGINAL_COMMAND=words)

    def calls(self, name: str) -> list[list[str]]:
        """Returns the arguments of each call of a tool."""
        lines = [line.split("\t") for line in self.log.read_text().splitlines()]
        return [arguments for tool, *arguments in lines if tool == name]

    def called(self) -> list[str]:
        return [line.split("\t")[0] for line in self.log.read_text().splitlines()]


@pytest.fixture
def host(tmp_path) -> Host:
    return Host(tmp_path)


def configuration() -> dict:
    return tomlkit.parse((EXAMPLES / "lab.toml").read_text()).unwrap()


def machines() -> dict[str, dict]:
    accounts = configuration()["accounts"].items()
    return {
        f"{account}/machine/{name}": machine
        for account, login in accounts
        for name, machine in login["machines"].items()
    }


def commands() -> list[str]:
    kinds = ("start", "stop", "force", "status")
    return sorted({m[kind] for m in machines().values() for kind in kinds if kind in m})


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_valid_and_stops_at_the_first_error(name):
    path = EXAMPLES / name
    assert os.access(path, os.X_OK)
    text = path.read_text()
    assert text.startswith("#!/bin/sh\n")
    assert "\nset -eu\n" in text
    assert subprocess.run(["sh", "-n", path], check=False).returncode == 0


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
@pytest.mark.parametrize("name", SCRIPTS)
def test_shellcheck_has_nothing_to_say(name):
    done = subprocess.run(
        ["shellcheck", EXAMPLES / name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


# --- The gate -----------------------------------------------------------------------------------

RUNS = {
    "start build-01": [f"{LIBRARY}/wake-lan start 52:54:00:12:34:56 10.0.0.255"],
    "status build-01": [f"{LIBRARY}/wake-lan status 10.0.0.9 10.0.0.1"],
    "force gpu-01": [f"sudo -n {LIBRARY}/ipmi force 10.0.1.21"],
    "start robot-01": [f"sudo -n {LIBRARY}/wake-hetzner 321"],
    "stop agent-03": [
        f"sudo -n {LIBRARY}/k3s-node stop agent-03 staging",
        f"sudo -n {LIBRARY}/ipmi stop 10.0.1.33",
    ],
    "start agent-03": [
        f"sudo -n {LIBRARY}/ipmi start 10.0.1.33",
        f"sudo -n {LIBRARY}/k3s-node start agent-03 staging",
    ],
    "stop": ["sudo -n /usr/bin/systemctl --no-block poweroff"],
    "status": [],
}


def stand_ins(host: Host, script: str = SUCCEED) -> None:
    """Replaces each script that the gate runs with a fake one."""
    for name in SCRIPTS:
        if name == "offhours-gate":
            continue
        host.tool(name, script)
        shutil.move(host.bin / name, host.library / name)


def ran(host: Host) -> list[str]:
    """Returns what the gate ran, with the paths of a real host; what sudo ran is not repeated."""
    found = []
    for line in host.log.read_text().splitlines():
        call = line.replace("\t", " ").replace(str(host.library), LIBRARY)
        name = call.split(" ")[0]
        if name in SCRIPTS:
            call = f"{LIBRARY}/{call}"
            if found and found[-1] == f"sudo -n {call}":
                continue
        found.append(call)
    return found


@pytest.mark.parametrize("words", RUNS)
def test_the_gate_runs_one_fixed_command_for_each_word(host, words):
    stand_ins(host)
    done = host.gate(words)
    assert done.returncode == 0, done.stderr
    assert ran(host) == RUNS[words]


@pytest.mark.parametrize(
    ("words", "address"), [("build-01", "10.0.0.9"), ("robot-01", "203.0.113.21")]
)
def test_the_gate_stops_another_machine_over_ssh_without_asking_anything(host, words, address):
    host.tool("ssh", SUCCEED)
    assert host.gate(f"stop {words}").returncode == 0
    [arguments] = host.calls("ssh")
    assert arguments[-2:] == [f"offhours@{address}", "stop"]
    assert {"-n", "BatchMode=yes", "StrictHostKeyChecking=yes"} <= set(arguments)
    host.tool("ssh", "exit 255")
    # No connection: neither done nor refused.
    assert host.gate(f"stop {words}").returncode == 255


@pytest.mark.parametrize("words", commands())
def test_every_command_of_the_configuration_is_on_the_list(host, words):
    stand_ins(host)
    host.tool("ssh", SUCCEED)
    assert host.gate(words).returncode == (77 if words == "start" else 0)


@pytest.mark.parametrize(
    "words",
    [
        "",
        " ",
        "start build-0",
        "start build-011",
        "start build",
        "start build-01 ",
        " start build-01",
        "start  build-01",
        "start\tbuild-01",
        "START BUILD-01",
        "start build-01; touch {made}",
        "start build-01 && touch {made}",
        "start build-01 | touch {made}",
        "start build-01\ntouch {made}",
        "start build-01\n",
        "\nstart build-01",
        "start build-01 $(touch {made})",
        "$(touch {made})",
        "`touch {made}`",
        "stop*",
        "st?p",
        "[s]top",
        "*",
        "stop' ) touch {made} ;; '",
        "stop)",
        "stopp",
        "sto",
        "xstatus",
        "x status",
        "x; status",
        "force build-01",
        "sudo -n /usr/bin/systemctl --no-block poweroff",
        "-c stop",
        "offhours-gate",
    ],
)
def test_the_gate_refuses_everything_else_and_says_so(host, words, tmp_path):
    stand_ins(host)
    made = tmp_path / "made"
    done = host.gate(words.format(made=made))
    assert done.returncode == 126
    assert "not on the list" in done.stderr
    assert done.stdout == ""
    assert host.called() == []
    assert not made.exists()


def test_the_gate_refuses_a_login_without_a_command_and_runs_no_arguments(host):
    stand_ins(host)
    for arguments in ([], ["stop"], ["-c", "stop"], [""]):
        done = host.run("offhours-gate", *arguments)
        assert done.returncode == 126
        assert "not on the list" in done.stderr
    assert host.called() == []


def test_a_key_that_only_observes_runs_status_and_nothing_else(host):
    stand_ins(host)
    for words in commands():
        host.log.write_text("")
        done = host.run("offhours-gate", "status", SSH_ORIGINAL_COMMAND=words)
        if words.split(" ")[0] == "status":
            assert done.returncode == 0
        else:
            assert done.returncode == 126
            assert "not on the list" in done.stderr
            assert host.called() == []


@pytest.mark.parametrize(
    "words",
    [
        "status\nstart build-01",
        "status; start build-01",
        "statusx build-01",
        " status build-01",
        "",
    ],
)
def test_a_key_that_only_observes_has_exact_words(host, words):
    stand_ins(host)
    done = host.run("offhours-gate", "status", SSH_ORIGINAL_COMMAND=words)
    assert done.returncode == 126
    assert host.called() == []


def test_a_key_may_have_several_words(host):
    stand_ins(host)
    allowed = ("start", "status")
    for words, code in (("start build-01", 0), ("status build-01", 0), ("stop agent-04", 126)):
        done = host.run("offhours-gate", *allowed, SSH_ORIGINAL_COMMAND=words)
        assert done.returncode == code, words


def test_the_gate_reads_the_asked_text_once_and_evaluates_nothing():
    text = re.sub(r"(?m)^\s*#.*", "", (EXAMPLES / "offhours-gate").read_text())
    assert text.count("SSH_ORIGINAL_COMMAND") == 1
    assert not re.search(r"\beval\b|\bsh -c\b|`", text)


@pytest.mark.parametrize("code", [1, 3, 75, 77, 126])
def test_the_gate_passes_a_scripts_exit_code_on(host, code):
    stand_ins(host, f"exit {code}")
    for words in ("start build-01", "status gpu-01", "start robot-01", "stop agent-04"):
        assert host.gate(words).returncode == code


@pytest.mark.parametrize("code", [1, 75, 77])
def test_a_node_keeps_its_power_until_it_is_drained(host, code):
    stand_ins(host, f'case "$0" in */k3s-node) exit {code} ;; esac')
    assert host.gate("stop agent-03").returncode == code
    assert "ipmi" not in host.called()


def test_a_machine_refuses_to_start_itself(host):
    done = host.gate("start")
    assert done.returncode == 77
    assert "cannot start itself" in done.stderr
    assert host.called() == []


def test_sudo_allows_what_the_gate_asks_for_and_nothing_else(host):
    stand_ins(host)
    host.tool("ssh", SUCCEED)
    for words in commands():
        host.gate(words)
    asked = {
        " ".join(arguments[1:]).replace(str(host.library), LIBRARY)
        for arguments in host.calls("sudo")
    }
    lines = (EXAMPLES / "sudoers").read_text().splitlines()
    allowed = [line for line in lines if line and not line.startswith("#")]
    rule = re.compile(r"offhours ALL=\(root\) NOPASSWD: (/[a-z0-9/-]+( [a-z0-9.-]+)+)")
    matches = [rule.fullmatch(line) for line in allowed]
    assert all(matches), "a wildcard, a relative path, or no arguments"
    assert {match[1] for match in matches} == asked


GATE = "/usr/local/sbin/offhours-gate"


@pytest.mark.parametrize(("number", "command"), [(0, GATE), (1, f"{GATE} status")])
def test_a_key_may_start_the_gate_and_nothing_else(number, command):
    lines = (EXAMPLES / "authorized_keys").read_text().splitlines()
    assert len(lines) == 2
    line = re.fullmatch('(restrict,command="[^"]*") ([^ ]*) ([^ ]*) [^ ]*', lines[number])
    options, algorithm, key = line.groups()
    assert options == f'restrict,command="{command}"'
    assert algorithm == "ssh-ed25519"
    # Installed unchanged, it allows no login.
    with pytest.raises(ValueError):
        base64.b64decode(key, validate=True)


# --- Wake-on-LAN ----------------------------------------------------------------------------------


def test_a_machine_is_woken_with_three_packets(host):
    host.tool("wakeonlan", SUCCEED)
    assert host.code("wake-lan", "start", "52:54:00:12:34:56", "10.0.0.255") == 0
    assert host.calls("wakeonlan") == [["-i", "10.0.0.255", "52:54:00:12:34:56"]] * 3


def test_one_packet_that_left_is_enough_and_none_is_tried_again_later(host, tmp_path):
    once = tmp_path / "once"
    host.tool("wakeonlan", f"[ ! -e {once} ] && : >{once}")
    assert host.code("wake-lan", "start", "52:54:00:12:34:56", "10.0.0.255") == 0
    assert host.code("wake-lan", "start", "52:54:00:12:34:56", "10.0.0.255") == 75


@pytest.mark.parametrize(
    ("machine", "neighbour", "code"),
    [
        (0, 0, 0),
        (0, 1, 0),
        (1, 0, 3),
        (1, 1, 1),
        (1, 2, 1),
        (2, 0, 1),
        (127, 0, 1),
        (139, 0, 1),
    ],
)
def test_silence_means_stopped_only_while_the_neighbour_answers(host, machine, neighbour, code):
    host.tool(
        "ping", f'for to; do :; done\n[ "$to" = 10.0.0.9 ] && exit {machine}\nexit {neighbour}'
    )
    assert host.code("wake-lan", "status", "10.0.0.9", "10.0.0.1") == code


def test_wake_lan_without_its_tools_or_arguments_does_nothing(host):
    # This machine may have its own ping.
    host.tool("ping", "exit 127")
    assert host.code("wake-lan", "status", "10.0.0.9", "10.0.0.1") == 1
    for arguments in ([], ["start"], ["status", "10.0.0.9"], ["stop", "a", "b"]):
        assert host.code("wake-lan", *arguments) == 126


# --- Hetzner Robot --------------------------------------------------------------------------------


def error(status: int, code: str) -> str:
    return f'{{"error":{{"status":{status},"code":"{code}","message":"about 203.0.113.21"}}}}'


def robot(host: Host, status: int, body: str = "") -> None:
    host.tool("curl", f"printf '%s\\n%s' '{body}' {status}")


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (200, '{"wol":{"server_ip":"203.0.113.21","server_number":321}}', 0),
        (401, error(401, "UNAUTHORIZED"), 77),
        (403, error(403, "RATE_LIMIT_EXCEEDED"), 75),
        (403, error(403, "RATE_LIMIT_EXCEEDED").replace(":", ": ").replace(",", ",\n"), 75),
        (403, "", 77),
        (404, error(404, "SERVER_NOT_FOUND"), 77),
        (404, error(404, "WOL_NOT_AVAILABLE"), 77),
        (400, error(400, "INVALID_INPUT"), 77),
        (500, error(500, "WOL_FAILED"), 75),
        (500, "", 1),
        (503, "<html>maintenance</html>", 75),
        (302, "", 1),
        (0, "", 1),
    ],
)
def test_robots_answer_becomes_an_exit_code(host, status, body, code):
    robot(host, status, body)
    done = host.run("wake-hetzner", "321")
    assert done.returncode == code
    assert "203.0.113.21" not in done.stdout + done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    assert not code or done.stderr


@pytest.mark.parametrize(
    ("failed", "code"), [(6, 75), (7, 75), (28, 1), (35, 1), (52, 1), (56, 1), (60, 1)]
)
def test_without_an_answer_only_a_request_that_never_left_is_tried_again(host, failed, code):
    host.tool("curl", f"exit {failed}")
    assert host.code("wake-hetzner", "321") == code


def test_the_password_is_in_no_argument(host):
    robot(host, 200)
    host.run("wake-hetzner", "321")
    [arguments] = host.calls("curl")
    assert "ss wo" not in " ".join(arguments)
    assert "#ws+AbCdEfGh" not in " ".join(arguments)
    # It must come first: otherwise root's .curlrc may add options.
    assert arguments[0] == "-q"
    assert arguments[arguments.index("--config") + 1] == str(host.credentials)
    assert arguments[-1] == "https://robot-ws.your-server.de/wol/321"
    assert arguments[arguments.index("--request") + 1] == "POST"


def test_a_refused_login_is_not_repeated_until_the_credentials_change(host):
    robot(host, 401)
    for _ in range(4):
        done = host.run("wake-hetzner", "321")
        assert done.returncode == 77
        assert "10 minutes" in done.stderr
    assert len(host.calls("curl")) == 1
    robot(host, 200)
    later = host.refused.stat().st_mtime + 1
    os.utime(host.credentials, (later, later))
    assert host.code("wake-hetzner", "321") == 0


def test_several_servers_at_once_fail_with_one_login(host):
    robot(host, 401)
    calls = [threading.Thread(target=host.run, args=("wake-hetzner", str(n))) for n in range(5)]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert len(host.calls("curl")) == 1


@pytest.mark.parametrize("arguments", [[], [""], ["321", "322"], ["321/../reset"], ["-1"], ["3 2"]])
def test_robot_is_asked_for_a_number_alone(host, arguments):
    robot(host, 200)
    assert host.code("wake-hetzner", *arguments) == 126
    assert host.called() == []


def test_without_credentials_robot_is_not_asked(host):
    robot(host, 200)
    host.credentials.unlink()
    assert host.code("wake-hetzner", "321") == 77
    assert host.called() == []


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_curl_itself_sends_the_credentials_of_the_file(host):
    asked = []

    class Robot(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append((self.path, self.headers["Authorization"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"wol":{"server_number":321}}')

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Robot) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        host.install("wake-hetzner", robot=f"http://127.0.0.1:{server.server_port}")
        done = host.run("wake-hetzner", "321")
        server.shutdown()
    assert done.returncode == 0, done.stderr
    login = base64.b64encode(f"#ws+AbCdEfGh:{PASSWORD}".encode()).decode()
    assert asked == [("/wol/321", f"Basic {login}")]


# --- IPMI -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "power"), [("start", "on"), ("stop", "soft"), ("force", "off"), ("status", "status")]
)
def test_ipmitool_is_called_with_its_password_in_a_file(host, asked, power):
    host.tool("ipmitool", "echo 'Chassis Power is on'")
    assert host.code("ipmi", asked, "10.0.1.21") == 0
    [arguments] = host.calls("ipmitool")
    assert arguments[-3:] == ["chassis", "power", power]
    assert arguments[arguments.index("-f") + 1] == f"{host.passwords}/10.0.1.21"
    assert arguments[arguments.index("-H") + 1] == "10.0.1.21"
    assert arguments[arguments.index("-I") + 1] == "lanplus"
    assert not {"-P", "-E", "-a"} & set(arguments)


@pytest.mark.parametrize("failed", [1, 3, 75, 77, 127])
def test_a_failure_of_ipmitool_is_an_unknown_outcome(host, failed):
    host.tool("ipmitool", f"echo 'Chassis Power is off'; exit {failed}")
    for asked in ("start", "stop", "force", "status"):
        assert host.code("ipmi", asked, "10.0.1.21") == 1


@pytest.mark.parametrize(
    ("shown", "code"),
    [
        ("Chassis Power is on", 0),
        ("Chassis Power is off", 3),
        ("", 1),
        ("Chassis Power is unknown", 1),
        ("Unable to get Chassis Power Status", 1),
        ("off", 1),
    ],
)
def test_only_a_controller_that_says_off_is_off(host, shown, code):
    host.tool("ipmitool", f"echo '{shown}'")
    assert host.code("ipmi", "status", "10.0.1.21") == code


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["status"],
        ["reset", "10.0.1.21"],
        ["status", "../root"],
        ["status", "-x"],
        ["status", ""],
    ],
)
def test_ipmi_takes_four_words_and_one_controller(host, arguments):
    host.tool("ipmitool", "echo 'Chassis Power is on'")
    assert host.code("ipmi", *arguments) == 126
    assert host.called() == []


# --- Kubernetes -----------------------------------------------------------------------------------

AGENT = '{"kubernetes.io/hostname":"agent-03","kubernetes.io/os":"linux"}'
WORKLOADS = "Deployment/web 3 \nDeployment/paused 0 \nStatefulSet/queue 2 5\n"


def cluster(host: Host, **answers: str) -> None:
    """Installs a kubectl that answers each kind of request with a script."""
    scripts = {
        "labels": f"echo '{AGENT}'",
        "node": "echo 'cordoned= ready=True'",
        "pods": "printf 'pods:\\n'",
        "workloads": f"printf '{WORKLOADS}'".replace("\n", "\\n"),
        "cordon": SUCCEED,
        "uncordon": SUCCEED,
        "drain": SUCCEED,
        "scale": SUCCEED,
        "annotate": SUCCEED,
    }
    assert answers.keys() <= scripts.keys()
    scripts.update(answers)
    host.tool(
        "kubectl",
        'case "$*" in\n'
        f"*metadata.labels*) {scripts['labels']} ;;\n"
        f"*'get node '*) {scripts['node']} ;;\n"
        f"*'get pods '*) {scripts['pods']} ;;\n"
        f"*'get deployments,statefulsets '*) {scripts['workloads']} ;;\n"
        f"*uncordon*) {scripts['uncordon']} ;;\n"
        f"*cordon*) {scripts['cordon']} ;;\n"
        f"*drain*) {scripts['drain']} ;;\n"
        f"*annotate*) {scripts['annotate']} ;;\n"
        f"*scale*) {scripts['scale']} ;;\n"
        "*) echo unexpected >&2; exit 99 ;;\nesac",
    )


def changes(host: Host) -> list[str]:
    """Returns the requests to the cluster other than reads."""
    calls = [
        [word for word in call if not word.startswith("--request-timeout")]
        for call in host.calls("kubectl")
    ]
    return [" ".join(call) for call in calls if "get" not in call]


def test_a_node_is_cordoned_scaled_and_drained_in_this_order(host):
    cluster(host)
    assert host.code("k3s-node", "stop", "agent-03", "staging") == 0
    staging = "--namespace staging"
    assert changes(host) == [
        "cordon agent-03",
        # The count is stored before anything is scaled.
        f"{staging} annotate --overwrite Deployment/web offhours-replicas=3",
        f"{staging} scale Deployment/web --replicas=0",
        f"{staging} annotate --overwrite StatefulSet/queue offhours-replicas=2",
        f"{staging} scale StatefulSet/queue --replicas=0",
        "drain agent-03 --ignore-daemonsets --delete-emptydir-data --timeout=30s",
    ]


def test_a_start_restores_the_counts_and_leaves_what_someone_scaled(host):
    cluster(
        host,
        workloads="printf 'Deployment/web 0 3\\nDeployment/paused 0 \\nStatefulSet/queue 1 2\\n'",
    )
    assert host.code("k3s-node", "start", "agent-03", "staging") == 0
    staging = "--namespace staging"
    assert changes(host) == [
        "uncordon agent-03",
        f"{staging} scale Deployment/web --replicas=3",
        f"{staging} annotate Deployment/web offhours-replicas-",
        f"{staging} annotate StatefulSet/queue offhours-replicas-",
    ]


HOSTILE = (
    "x\\n-fhttps://evil.example/x.yaml 0 1",
    "x\\n--server=https://evil.example 0 1",
    "1 --server=https://evil.example",
    "--server=https://evil.example",
    "x\\nNode/agent-03 0 1\\nDeployment/-x 0 1\\nDeployment/a/b 0 1\\nDeployment/A 0 1",
    "x\\nDeployment/web -1 1\\nDeployment/web 0 1x",
)


@pytest.mark.parametrize("annotation", HOSTILE)
def test_an_annotation_is_never_an_option_nor_another_kind_of_object(host, annotation):
    cluster(host, workloads=f"printf 'Deployment/web 0 {annotation}\\nStatefulSet/queue 2 5\\n'")
    for action in ("stop", "start"):
        assert host.code("k3s-node", action, "agent-03", "staging") == 0
    named = [change for change in changes(host) if "staging" in change]
    assert named == [
        "--namespace staging annotate --overwrite StatefulSet/queue offhours-replicas=2",
        "--namespace staging scale StatefulSet/queue --replicas=0",
        "--namespace staging annotate StatefulSet/queue offhours-replicas-",
    ]


def test_without_a_namespace_nothing_is_scaled(host):
    cluster(host)
    assert host.code("k3s-node", "stop", "agent-04") == 0
    assert host.code("k3s-node", "start", "agent-04") == 0
    assert [change.split()[0] for change in changes(host)] == ["cordon", "drain", "uncordon"]


@pytest.mark.parametrize("role", ["control-plane", "master", "etcd"])
def test_a_server_node_is_refused_untouched(host, role):
    labels = AGENT.replace("}", f',"node-role.kubernetes.io/{role}":"true"}}')
    cluster(host, labels=f"echo '{labels}'")
    assert host.code("k3s-node", "stop", "server-01", "staging") == 77
    assert changes(host) == []


@pytest.mark.parametrize(
    "labels", ["exit 1", "exit 77", "echo", "echo 'map[node-role.kubernetes.io/etcd:true]'"]
)
def test_a_node_whose_labels_cannot_be_read_is_left_alone(host, labels):
    cluster(host, labels=labels)
    assert host.code("k3s-node", "stop", "agent-03", "staging") == 75
    assert changes(host) == []


@pytest.mark.parametrize("step", ["cordon", "workloads", "annotate", "scale", "drain"])
def test_a_stop_that_fails_halfway_is_tried_again_and_goes_no_further(host, step):
    cluster(host, **{step: "exit 1"})
    assert host.code("k3s-node", "stop", "agent-03", "staging") == 75
    done = " ".join(changes(host))
    assert "drain" not in done or step == "drain"
    assert "--replicas=0" not in done or step in ("scale", "drain")


@pytest.mark.parametrize("step", ["uncordon", "workloads", "annotate", "scale"])
def test_a_start_that_fails_halfway_is_tried_again_with_the_count_kept(host, step):
    cluster(
        host,
        **{step: "exit 1", "workloads": "printf 'Deployment/web 0 3\\n'"}
        | ({"workloads": "exit 1"} if step == "workloads" else {}),
    )
    assert host.code("k3s-node", "start", "agent-03", "staging") == 75
    forgotten = any("offhours-replicas-" in change for change in changes(host))
    assert forgotten == (step == "annotate")


@pytest.mark.parametrize(
    ("node", "pods", "code"),
    [
        ("cordoned= ready=True", "", 0),
        ("cordoned= ready=False", "", 1),
        ("cordoned= ready=Unknown", "", 1),
        ("cordoned= ready=", "", 1),
        ("", "", 1),
        ("cordoned=true ready=True", "", 3),
        ("cordoned=true ready=Unknown", "", 3),
        ("cordoned=true ready=True", "owner=DaemonSet\nowner=Node\n", 3),
        ("cordoned=true ready=True", "owner=DaemonSet\nowner=ReplicaSet\n", 0),
        # A pod without an owner.
        ("cordoned=true ready=True", "owner=\n", 0),
    ],
)
def test_a_node_is_stopped_once_it_is_cordoned_and_empty(host, node, pods, code):
    cluster(host, node=f"echo '{node}'", pods=f"printf 'pods:\\n{pods}'".replace("\n", "\\n"))
    assert host.code("k3s-node", "status", "agent-04") == code


@pytest.mark.parametrize(
    ("node", "pods"),
    [
        ("exit 1", SUCCEED),
        ("exit 3", SUCCEED),
        ("echo 'cordoned=true ready=True'", "exit 1"),
        ("echo 'cordoned=true ready=True'", "exit 3"),
        ("echo 'cordoned=true ready=True'", "printf 'pods:\\n'; exit 1"),
        ("echo 'cordoned=true ready=True'", SUCCEED),
    ],
)
def test_a_status_that_cannot_be_read_is_never_stopped(host, node, pods):
    cluster(host, node=node, pods=pods)
    assert host.code("k3s-node", "status", "agent-04") not in (3, 75, 77)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["stop"],
        ["stop", ""],
        ["stop", "-x"],
        ["stop", "a b"],
        ["stop", "a", "-n"],
        ["drop", "a"],
        ["status", "a", "b"],
        ["stop", "a", "b", "c"],
    ],
)
def test_a_node_is_named_plainly(host, arguments):
    cluster(host)
    assert host.code("k3s-node", *arguments) == 126
    assert host.called() == []


# --- The configuration ----------------------------------------------------------------------------

# The keys that crates/domain/src/ssh.rs accepts; its own tests cover the rest.
LOGIN = {
    "provider", "host", "port", "user", "key", "read_key", "host_keys", "connect_timeout",
    "command_timeout", "output_limit", "allow_private_hosts", "machines",
}  # fmt: skip
MACHINE = {
    "start", "stop", "status", "force", "probe", "unreachable_means", "start_deadline",
    "stop_deadline", "tags",
}  # fmt: skip
NAME = re.compile("[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?")


def fields(blob: bytes) -> list[bytes]:
    found = []
    while blob:
        (length,) = struct.unpack_from(">I", blob)
        found.append(blob[4 : 4 + length])
        blob = blob[4 + length :]
    return found


def test_the_configuration_is_one_that_offhours_takes():
    keys = []
    for account, login in configuration()["accounts"].items():
        assert NAME.fullmatch(account)
        assert login.keys() <= LOGIN
        assert {"host", "user", "key", "host_keys", "machines"} <= login.keys()
        assert re.fullmatch("ssm:/offhours/acting/[a-z0-9-]+", login["key"])
        assert re.fullmatch("ssm:/offhours/[a-z0-9-]+", login["read_key"])
        keys += [login["key"], login["read_key"]]
        for line in login["host_keys"]:
            algorithm, key = line.split(" ")
            named, point = fields(base64.b64decode(key, validate=True))
            assert (algorithm, named, len(point)) == ("ssh-ed25519", b"ssh-ed25519", 32)
    assert len(keys) == len(set(keys)), "each account has a key of its own"
    for machine in machines().values():
        assert machine.keys() <= MACHINE
        assert {"start", "stop"} <= machine.keys()
        assert {"status", "probe"} & machine.keys()
        for deadline in ("start_deadline", "stop_deadline"):
            assert re.fullmatch("[0-9]+m", machine.get(deadline, "10m"))
    for command in commands():
        assert command.isprintable()
        assert len(command.encode()) <= 512


def test_every_machine_follows_a_schedule_that_is_there():
    written = configuration()["schedules"]
    listed = {
        name: reference for name in written for reference in written[name].get("resources", [])
    }
    assert set(listed.values()) <= machines().keys()
    for reference, machine in machines().items():
        assert NAME.fullmatch(reference.rsplit("/")[-1])
        tags = machine.get("tags", [])
        names = [tag.removeprefix("offhours:") for tag in tags if tag.startswith("offhours:")]
        names += [name for name, listed_one in listed.items() if listed_one == reference]
        assert len(names) == 1, reference
        assert names[0] in written


def test_what_cannot_start_itself_is_never_asked_to():
    written = configuration()["schedules"]
    for machine in machines().values():
        if machine["start"] == "start":
            assert machine["unreachable_means"] == "stopped"
            [name] = [tag.removeprefix("offhours:") for tag in machine["tags"]]
            assert all("begin" not in period for period in written[name]["periods"])
        else:
            assert "unreachable_means" not in machine
