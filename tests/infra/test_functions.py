"""The functions, their timers and their settings."""

import re

import pytest
from template import ACCOUNT, NAME, REGION, ROOT, Stack

FUNCTIONS = {
    "Dispatch": "dispatch",
    "PollStatus": "poll-status",
    "Stop": "stop",
    "Start": "start",
}
#: Only where it is asked for: tests/infra/test_pages.py.
OPTIONAL = {"Publish": "publish"}
DEAD_LETTERS = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{NAME}-dead-letters"
#: The settings of all functions, then those of each.
ALL = {
    "OFFHOURS_TABLE_PREFIX": f"{NAME}-",
    "OFFHOURS_PROTECT": "",
    "OFFHOURS_MODE": "act",
    "RUST_LOG": "info",
}
ACTS = {
    "OFFHOURS_EVENT_BUS": NAME,
    "OFFHOURS_ACCOUNT_URLS": "",
    "OFFHOURS_DIGITALOCEAN_URL": "",
    "OFFHOURS_HETZNER_URL": "",
}
INVOKES = {
    "OFFHOURS_STOP_FUNCTION": f"{NAME}-stop",
    "OFFHOURS_START_FUNCTION": f"{NAME}-start",
}
SETTINGS = {
    "dispatch": INVOKES,
    "poll-status": {**INVOKES, **ACTS},
    "stop": ACTS,
    "start": ACTS,
}
#: Settings that only a person's command reads.
OF_THE_COMMAND = {"OFFHOURS_POLL_STATUS_FUNCTION", "OFFHOURS_DISPATCH_FUNCTION"}
#: Settings for functions that do not run on AWS: no template may allow plain HTTP to a host, or
#: tokens from a function's own variables.
NOT_ON_AWS = {"OFFHOURS_PLAIN_HTTP_HOST", "OFFHOURS_LOCAL_TOKENS"}


def test_there_are_four_functions_of_the_workspaces_binaries(plain):
    written = FUNCTIONS | OPTIONAL
    assert plain.code == {name: f"../target/lambda/{verb}/" for name, verb in written.items()}
    for verb in written.values():
        assert (ROOT / "crates" / verb / "src" / "main.rs").exists()
    names = {name: one["FunctionName"] for name, one in functions(plain).items()}
    assert names == {name: f"{NAME}-{verb}" for name, verb in FUNCTIONS.items()}


def functions(stack: Stack) -> dict[str, dict]:
    return stack.of_type("AWS::Lambda::Function")


@pytest.mark.parametrize("architecture", ["x86_64", "arm64"])
def test_every_function_is_small_and_for_the_chosen_processor(architecture):
    for name, function in functions(Stack(Architecture=architecture)).items():
        assert function["Runtime"] == "provided.al2023", name
        assert function["Handler"] == "bootstrap", name
        assert int(function["MemorySize"]) == 128, name
        assert function["Architectures"] == [architecture], name


def test_a_large_fleet_gets_more_memory_and_with_it_more_of_a_processor():
    for name, function in functions(Stack(Memory="1024")).items():
        assert int(function["MemorySize"]) == 1024, name


def test_timeouts_let_each_function_finish_its_work(plain):
    timeouts = {FUNCTIONS[name]: one["Timeout"] for name, one in functions(plain).items()}
    assert timeouts == {"dispatch": 30, "poll-status": 75, "stop": 120, "start": 120}


def test_a_permit_outlives_the_function_that_wrote_it(plain):
    timing = (ROOT / "crates" / "domain" / "src" / "timing.rs").read_text()
    (permit,) = re.findall(r"PERMIT: SignedDuration = SignedDuration::from_secs\((\d+)\)", timing)
    for name in ("Stop", "Start"):
        assert functions(plain)[name]["Timeout"] <= int(permit)


def test_no_function_takes_concurrency_from_the_account(full):
    for name, function in functions(full).items():
        assert "ReservedConcurrentExecutions" not in function, name


def test_each_function_logs_json_to_its_own_group(plain):
    groups = plain.of_type("AWS::Logs::LogGroup")
    assert {one["LogGroupName"] for one in groups.values()} == {
        f"/aws/lambda/{NAME}-{verb}" for verb in FUNCTIONS.values()
    }
    for name, function in functions(plain).items():
        assert function["LoggingConfig"] == {
            "LogFormat": "JSON",
            # RUST_LOG filters, and Lambda takes a line without a level that it knows for INFO.
            "ApplicationLogLevel": "TRACE",
            "LogGroup": f"/aws/lambda/{NAME}-{FUNCTIONS[name]}",
        }


def test_logs_are_kept_as_long_as_was_chosen():
    for one in Stack(LogRetentionDays="90").of_type("AWS::Logs::LogGroup").values():
        assert one["RetentionInDays"] == "90"


def test_each_function_is_given_the_settings_it_needs_and_no_more(plain):
    given = {
        FUNCTIONS[name]: one["Environment"]["Variables"] for name, one in functions(plain).items()
    }
    assert given == {verb: {**ALL, **own} for verb, own in SETTINGS.items()}


def test_addresses_and_the_log_level_reach_the_functions():
    addresses = {"DigitalOceanUrl": "http://simulator:8100", "HetznerUrl": "https://hz.example"}
    stack = Stack(LogLevel="debug", **addresses)
    for name, function in functions(stack).items():
        variables = function["Environment"]["Variables"]
        assert variables["RUST_LOG"] == "debug"
        if name != "Dispatch":
            assert variables["OFFHOURS_DIGITALOCEAN_URL"] == "http://simulator:8100"
            assert variables["OFFHOURS_HETZNER_URL"] == "https://hz.example"


def test_the_floor_and_the_allowed_addresses_reach_the_functions():
    chosen = {"Protect": "name:*prod*,tag:production", "Mode": "observe"}
    stack = Stack(AccountUrls="https://gateway.example", **chosen)
    for name, function in functions(stack).items():
        variables = function["Environment"]["Variables"]
        assert variables["OFFHOURS_PROTECT"] == "name:*prod*,tag:production"
        assert variables["OFFHOURS_MODE"] == "observe"
        if name != "Dispatch":
            assert variables["OFFHOURS_ACCOUNT_URLS"] == "https://gateway.example"


def test_the_template_and_the_code_know_the_same_settings(full):
    code = (ROOT / "crates" / "environment" / "src" / "settings.rs").read_text()
    facts = (ROOT / "crates" / "domain" / "src" / "provider.rs").read_text()
    known = set(re.findall(r'pub const \w+: &str = "(OFFHOURS_\w+)";', code))
    known |= set(re.findall(r'endpoint_setting: "(OFFHOURS_\w+)"', facts))
    given = {
        variable
        for function in functions(full).values()
        for variable in function["Environment"]["Variables"]
        if variable.startswith("OFFHOURS_")
    }
    assert given == known - OF_THE_COMMAND - NOT_ON_AWS
    assert known >= OF_THE_COMMAND


def test_two_timers_tick_every_minute_and_repeat_nothing(plain):
    rules = {
        one["Name"]: one
        for one in plain.of_type("AWS::Events::Rule").values()
        if "ScheduleExpression" in one
    }
    assert set(rules) == {f"{NAME}-dispatch", f"{NAME}-poll-status"}
    for name, rule in rules.items():
        assert rule["ScheduleExpression"] == "cron(* * * * ? *)"
        assert rule["State"] == "ENABLED"
        (target,) = rule["Targets"]
        assert target["Arn"] == f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"
        assert target["RetryPolicy"] == {
            "MaximumRetryAttempts": 0,
            "MaximumEventAgeInSeconds": 60,
        }
        # The next tick does what this one did not, and alarms watch for missing runs.
        assert "DeadLetterConfig" not in target


def test_timers_can_be_paused():
    rules = Stack(Timers="DISABLED").of_type("AWS::Events::Rule").values()
    states = {one["Name"]: one["State"] for one in rules if "ScheduleExpression" in one}
    assert states == {f"{NAME}-dispatch": "DISABLED", f"{NAME}-poll-status": "DISABLED"}


def test_no_asynchronous_invocation_is_repeated_and_what_stop_and_start_fail_is_kept(plain):
    configs = plain.of_type("AWS::Lambda::EventInvokeConfig").values()
    assert {one["FunctionName"] for one in configs} == {
        f"{NAME}-{verb}" for verb in FUNCTIONS.values()
    }
    for config in configs:
        assert config["Qualifier"] == "$LATEST"
        assert config["MaximumRetryAttempts"] == 0
        acts = config["FunctionName"] in (f"{NAME}-stop", f"{NAME}-start")
        # A new account runs ten invocations at once: at an edge, some wait for their turn.
        assert config["MaximumEventAgeInSeconds"] == (300 if acts else 60)
        kept = config.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
        assert kept == (DEAD_LETTERS if acts else None)


def test_only_timers_and_a_persons_own_rules_may_invoke(plain):
    permissions = plain.of_type("AWS::Lambda::Permission").values()
    allowed = {(one["FunctionName"], one["SourceArn"]) for one in permissions}
    rule = f"arn:aws:events:{REGION}:{ACCOUNT}:rule"
    timer = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/{NAME}"
    assert allowed == {
        (f"{NAME}-dispatch", f"{timer}-dispatch"),
        (f"{NAME}-poll-status", f"{timer}-poll-status"),
        (f"{NAME}-stop", f"{rule}/{NAME}.*"),
        (f"{NAME}-start", f"{rule}/{NAME}.*"),
    }
    for one in permissions:
        assert one["Principal"] == "events.amazonaws.com"
        assert one["Action"] == "lambda:InvokeFunction"
