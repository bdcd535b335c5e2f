"""The exact permissions of each function and of each kind of person."""

import json
import re

import pytest
from template import ACCOUNT, EVERYTHING, KEY, NAME, REGION, STORE, Stack


def table(name: str) -> str:
    return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{NAME}-{name}"


def function(name: str) -> str:
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{NAME}-{name}"


def log(name: str) -> str:
    return f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/lambda/{NAME}-{name}:*"


TOKENS = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/{NAME}/*"
ACTING = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/{NAME}/acting/*"
READING = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/{NAME}/reading/*"
BUS = f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/{NAME}"
DEAD_LETTERS = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{NAME}-dead-letters"
RECORDS = {"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query"}
CONFIGURATION = ({"dynamodb:Query"}, {table("schedules"), table("accounts")})
DUE = ({"dynamodb:Query"}, {f"{table('resources')}/index/due"})


def write_log(function_name: str) -> dict:
    actions = {"logs:CreateLogStream", "logs:PutLogEvents"}
    return {"WriteLog": (actions, {log(function_name)})}


ACT = {
    "ReadConfiguration": CONFIGURATION,
    "ReadRecords": (RECORDS, {table("resources")}),
    "WriteRecords": ({"dynamodb:PutItem"}, {table("resources"), table("history")}),
    "ReadTokens": ({"ssm:GetParameter"}, {TOKENS}),
    "TellEvents": ({"events:PutEvents"}, {BUS}),
}
LEAVE_READING = ({"ssm:GetParameter"}, {READING})
CARRY_OVER = ({"dynamodb:DeleteItem"}, {table("resources")})
LEARNT = ({"dynamodb:UpdateItem"}, {table("accounts")})
ROLES = {
    "dispatch": {
        "ReadConfiguration": CONFIGURATION,
        "ReadWhatIsDue": DUE,
        "ReadWhatOthersFollow": ({"dynamodb:Query"}, {table("resources")}),
        "HandOut": ({"lambda:InvokeFunction"}, {function("stop"), function("start")}),
        **write_log("dispatch"),
    },
    "poll-status": {
        **ACT,
        "ReadWhatIsDue": DUE,
        "CarryRecordsOver": CARRY_OVER,
        "NoteWhatWasLearntAndTold": LEARNT,
        "HandOverNextSteps": ({"lambda:InvokeFunction"}, {function("stop"), function("start")}),
        "LeaveTokensThatAct": ({"ssm:GetParameter"}, {ACTING}),
        **write_log("poll-status"),
    },
    **{
        name: {
            **ACT,
            "NoteWhatWasLearnt": LEARNT,
            "LeaveTokensThatRead": LEAVE_READING,
            "ReportFailures": ({"sqs:SendMessage"}, {DEAD_LETTERS}),
            **write_log(name),
        }
        for name in ("stop", "start")
    },
}
FUNCTIONS = ("dispatch", "poll-status", "stop", "start")
TABLES = ("schedules", "accounts", "resources", "history")
VIEWER = {
    "TellTime": ({"dynamodb:GetItem"}, {table("schedules")}),
    "ReadConfiguration": CONFIGURATION,
    "ReadRecords": (RECORDS, {table("resources")}),
    "ReadHistory": ({"dynamodb:Query", "dynamodb:Scan"}, {table("history")}),
    "SeeTables": ({"dynamodb:DescribeTable"}, {table(one) for one in TABLES}),
    "SeeDispatch": ({"lambda:GetFunctionConfiguration"}, {function("dispatch")}),
    "ReadLogs": (
        {
            "logs:DescribeLogStreams",
            "logs:FilterLogEvents",
            "logs:GetLogEvents",
            "logs:StartQuery",
        },
        {log(one) for one in FUNCTIONS},
    ),
    "SeeDashboard": (
        {"cloudwatch:GetDashboard"},
        {f"arn:aws:cloudwatch::{ACCOUNT}:dashboard/{NAME}-{REGION}"},
    ),
    "SeeMetrics": (
        {"cloudwatch:DescribeAlarms", "cloudwatch:GetMetricData", "logs:GetQueryResults"},
        {"*"},
    ),
    "SeeDeadLetters": ({"sqs:GetQueueAttributes"}, {DEAD_LETTERS}),
    "SeeSubscriptions": (
        {"sns:ListSubscriptionsByTopic"},
        {f"arn:aws:sns:{REGION}:{ACCOUNT}:{NAME}-alerts"},
    ),
}
OPERATOR = {
    "SetOverrides": ({"dynamodb:PutItem"}, {table("schedules")}),
    "KeepActivity": ({"dynamodb:PutItem"}, {table("history")}),
    "Ask": (
        {"lambda:InvokeFunction"},
        {function("stop"), function("start"), function("poll-status")},
    ),
    "ClearDeadLetters": (
        {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:PurgeQueue"},
        {DEAD_LETTERS},
    ),
}
ADMIN = {
    "ApplySchedules": ({"dynamodb:PutItem"}, {table("schedules")}),
    "ApplyAccounts": ({"dynamodb:PutItem"}, {table("accounts")}),
    "MakeDue": ({"dynamodb:PutItem"}, {table("resources")}),
    "DeleteRecords": CARRY_OVER,
    "BackUp": ({"dynamodb:Scan"}, {table("schedules"), table("accounts"), table("resources")}),
    "KeepWhatIsGivenUp": ({"dynamodb:PutItem"}, {table("history")}),
    "KeepTokens": ({"ssm:PutParameter", "ssm:DeleteParameter"}, {TOKENS}),
}
PEOPLE = {"ViewerPolicy": VIEWER, "OperatorPolicy": OPERATOR, "AdminPolicy": ADMIN}
#: The roles under which the bus's rules reach their targets: tests/infra/test_alerts.py.
OF_RULES = {"AlertsRole", "WebhookRole"}
#: Statements that deny what another one allows, and the tokens that they deny.
DENIED = {"LeaveTokensThatAct": "acting/*", "LeaveTokensThatRead": "reading/*"}
#: Statements whose actions have no resource-level permissions.
ANY_RESOURCE = {"SeeMetrics"}
#: The partitions that each statement's writes are limited to.
PARTITIONS = {
    "NoteWhatWasLearnt": ("StringEquals", ["state"]),
    "NoteWhatWasLearntAndTold": ("StringEquals", ["state", "digest", "notice", "prices"]),
    "SetOverrides": ("StringEquals", ["override"]),
    "KeepActivity": ("StringEquals", ["activity"]),
    "ApplySchedules": ("StringLike", ["head", "log", "generation#*"]),
    "ApplyAccounts": ("StringLike", ["generation#*"]),
}


def listed(one) -> set[str]:
    return {one} if isinstance(one, str) else set(one)


def statements(document: dict) -> dict[str, dict]:
    by_sid = {one["Sid"]: one for one in document["Statement"]}
    assert len(by_sid) == len(document["Statement"]), "a Sid occurs twice"
    for sid, one in by_sid.items():
        assert one["Effect"] == ("Deny" if sid in DENIED else "Allow"), sid
    return by_sid


def functions_roles(stack: Stack) -> dict[str, dict]:
    roles = stack.of_type("AWS::IAM::Role")
    return {name: one for name, one in roles.items() if name not in OF_RULES}


def functions_statements(stack: Stack) -> dict[str, dict[str, dict]]:
    roles = {}
    for role in functions_roles(stack).values():
        (policy,) = role["Policies"]
        roles[policy["PolicyName"]] = statements(policy["PolicyDocument"])
    return roles


def peoples_statements(stack: Stack) -> dict[str, dict[str, dict]]:
    policies = stack.of_type("AWS::IAM::ManagedPolicy")
    return {name: statements(one["PolicyDocument"]) for name, one in policies.items()}


def allowed(by_sid: dict[str, dict]) -> dict[str, tuple[set[str], set[str]]]:
    return {sid: (listed(one["Action"]), listed(one["Resource"])) for sid, one in by_sid.items()}


def all_statements(stack: Stack):
    for name, by_sid in (functions_statements(stack) | peoples_statements(stack)).items():
        for sid, statement in by_sid.items():
            yield name, sid, statement


def test_each_function_may_do_exactly_this(plain):
    roles = {name: allowed(by_sid) for name, by_sid in functions_statements(plain).items()}
    assert roles == ROLES


def test_each_kind_of_person_may_do_exactly_this(plain):
    policies = {name: allowed(by_sid) for name, by_sid in peoples_statements(plain).items()}
    assert policies == PEOPLE


def test_publish_reads_and_writes_into_its_bucket_and_viewers_read_from_it():
    stack = Stack(Pages="ENABLED")
    pages = {f"arn:aws:s3:::{NAME}-PagesBucket/*"}
    roles = {name: allowed(by_sid) for name, by_sid in functions_statements(stack).items()}
    assert roles == ROLES | {
        "publish": {
            "ReadConfiguration": CONFIGURATION,
            "ListRecords": ({"dynamodb:Query"}, {table("resources")}),
            "ReadHistory": VIEWER["ReadHistory"],
            "WritePages": ({"s3:PutObject"}, pages),
            **write_log("publish"),
        }
    }
    viewer = allowed(peoples_statements(stack)["ViewerPolicy"])
    actions, groups = VIEWER["ReadLogs"]
    assert viewer == VIEWER | {
        "ReadLogs": (actions, groups | {log("publish")}),
        "ReadPages": ({"s3:GetObject"}, pages),
        "FindPages": ({"lambda:GetFunctionConfiguration"}, {function("publish")}),
    }


def test_each_function_has_a_role_of_its_own_that_only_lambda_takes(plain):
    roles = functions_roles(plain)
    used = [one["Role"] for one in plain.of_type("AWS::Lambda::Function").values()]
    assert len(set(used)) == len(used) == len(roles) == 4
    for role in roles.values():
        (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}
        assert trust["Action"] == "sts:AssumeRole"
        assert "ManagedPolicyArns" not in role


def test_every_role_has_the_boundary_that_is_given_and_else_none(plain, full):
    boundaries = {one.get("PermissionsBoundary") for one in full.of_type("AWS::IAM::Role").values()}
    assert boundaries == {EVERYTHING["PermissionsBoundaryArn"]}
    assert len(full.of_type("AWS::IAM::Role")) == 7
    for role in plain.of_type("AWS::IAM::Role").values():
        assert "PermissionsBoundary" not in role


def test_no_update_replaces_a_policy_that_people_are_attached_to(plain):
    # The description of a managed policy never changes: AWS replaces the policy instead.
    described = {
        name: one["Description"] for name, one in plain.of_type("AWS::IAM::ManagedPolicy").items()
    }
    assert described == {
        "ViewerPolicy": f"{NAME}: see everything, change nothing.",
        "OperatorPolicy": f"{NAME}: besides what a viewer may, stop and start.",
        "AdminPolicy": f"{NAME}: besides what an operator may, configure.",
    }


def test_functions_have_the_roles_that_are_named_after_them(plain):
    for name, function_ in plain.of_type("AWS::Lambda::Function").items():
        assert function_["Role"] == plain.attribute(f"{name}Role", "Arn")


def test_dispatch_writes_nothing_and_sees_no_token(full):
    actions = set()
    for actions_, _ in allowed(functions_statements(full)["dispatch"]).values():
        actions |= actions_
    services = {action.partition(":")[0] for action in actions}
    assert services == {"dynamodb", "lambda", "logs"}
    assert {action for action in actions if action.startswith("dynamodb:")} == {"dynamodb:Query"}


def test_no_function_writes_the_configuration(full):
    writes = {"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"}
    for name, by_sid in functions_statements(full).items():
        for sid, (actions, resources) in allowed(by_sid).items():
            assert not (actions & writes and table("schedules") in resources), (name, sid)


def test_an_operator_writes_overrides_and_nothing_else_of_the_configuration_or_of_a_record(full):
    writes = {}
    for sid, (actions, resources) in allowed(peoples_statements(full)["OperatorPolicy"]).items():
        for one in resources & {table(name) for name in TABLES}:
            writes[one] = (actions, PARTITIONS[sid][1])
    assert writes == {
        table("schedules"): ({"dynamodb:PutItem"}, ["override"]),
        table("history"): ({"dynamodb:PutItem"}, ["activity"]),
    }


def test_records_are_deleted_by_poll_status_and_admins_alone_and_no_person_reads_tokens(full):
    for name, sid, statement in all_statements(full):
        actions = listed(statement["Action"])
        assert "dynamodb:DeleteTable" not in actions, (name, sid)
        if "dynamodb:DeleteItem" in actions:
            assert name in {"poll-status", "AdminPolicy"}, (name, sid)
            assert listed(statement["Resource"]) == {table("resources")}, (name, sid)
        if name in PEOPLE:
            assert not actions & {"ssm:GetParameter", "ssm:GetParameters", "kms:Decrypt"}


def test_no_action_has_a_wildcard_and_no_resource_is_everything(full):
    for name, sid, statement in all_statements(full):
        for action in listed(statement["Action"]):
            assert re.fullmatch(r"[a-z0-9]+:[A-Za-z]+", action), (name, sid, action)
        if sid not in ANY_RESOURCE:
            for resource in listed(statement["Resource"]):
                # A wildcard only below a log group, or below the path of the tokens.
                assert "*" not in resource.removesuffix(":*").removesuffix("/*"), (name, sid)
                # The name of a bucket is unique, and its ARN names no account.
                assert ACCOUNT in resource or resource.startswith("arn:aws:s3:::"), (name, sid)


def test_writes_to_shared_tables_are_bound_to_partitions(full):
    for name, sid, statement in all_statements(full):
        if sid in PARTITIONS:
            operator, partitions = PARTITIONS[sid]
            expected = {f"ForAllValues:{operator}": {"dynamodb:LeadingKeys": partitions}}
            assert statement["Condition"] == expected, (name, sid)


def test_the_partitions_are_those_of_the_store():
    code = (STORE / "item.rs").read_text()
    constants = set(re.findall(r'pub const \w+: &str = "(\w+)";', code))
    assert {"head", "override", "log", "state", "activity"} <= constants
    assert 'format!("generation#{' in code


def test_events_are_sent_under_the_services_own_name_alone(full):
    for name, sid, statement in all_statements(full):
        if sid == "TellEvents":
            condition = {"ForAllValues:StringEquals": {"events:source": ["offhours"]}}
            assert statement["Condition"] == condition, name


def test_a_key_of_ones_own_is_used_for_tokens_alone():
    path = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/secrets/offhours/*"
    stack = Stack(**EVERYTHING | {"TokenPath": "/secrets/offhours"})
    condition = {
        "StringEquals": {"kms:ViaService": f"ssm.{REGION}.amazonaws.com"},
        "StringLike": {"kms:EncryptionContext:PARAMETER_ARN": path},
    }
    using = set()
    for name, sid, statement in all_statements(stack):
        for action in listed(statement["Action"]):
            if action.startswith("kms:"):
                assert listed(statement["Resource"]) == {KEY}
                assert statement["Condition"] == condition
                using.add((name, sid, action))
            if action.startswith("ssm:"):
                below = DENIED.get(sid, "*")
                assert listed(statement["Resource"]) == {path.removesuffix("*") + below}
    assert using == {
        ("poll-status", "DecryptTokens", "kms:Decrypt"),
        ("stop", "DecryptTokens", "kms:Decrypt"),
        ("start", "DecryptTokens", "kms:Decrypt"),
        ("AdminPolicy", "EncryptTokens", "kms:Encrypt"),
        # For a token that is kept as an advanced parameter.
        ("AdminPolicy", "EncryptTokens", "kms:GenerateDataKey"),
    }


def test_without_a_key_of_ones_own_no_statement_names_one(plain):
    for name, sid, statement in all_statements(plain):
        assert not any(one.startswith("kms:") for one in listed(statement["Action"])), (name, sid)


@pytest.mark.parametrize("name", PEOPLE)
def test_policies_are_small_enough_for_iam_even_with_long_names(full, name):
    document = json.dumps(full.properties(name)["PolicyDocument"], separators=(",", ":"))
    longest = document.replace(f"/{NAME}/*", f"/{'p' * 199}/*").replace(NAME, "n" * 52)
    # IAM does not count whitespace.
    assert len(longest) <= 6144


def test_roles_and_policies_are_unnamed(full):
    for name, resource in full.resources.items():
        if resource["Type"].startswith("AWS::IAM::"):
            properties = resource["Properties"]
            assert not {"RoleName", "ManagedPolicyName"} & set(properties), name
