"""Where events go: the bus, the topic, the webhook and the dead-letter queue."""

import json

import pytest
from template import ACCOUNT, EVERYTHING, NAME, REGION, Stack, source

ALERTS = {
    "source": ["offhours"],
    "detail-type": [
        "Transition Refused",
        "Transition Stuck",
        "Order Not Kept",
        "Resource Orphaned",
        "Resource In Conflict",
        "Resources Held",
        "Configuration Applied",
        "Pause Set",
        "Pause Ended",
        "Alerts Folded",
    ],
    "detail": {"folded": [{"exists": False}]},
}
DIGEST = {
    "source": ["offhours"],
    "detail-type": ["Edge Completed", "Stop Announced", "Stop Called Off"],
}
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:{NAME}-alerts"
DEAD_LETTERS = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{NAME}-dead-letters"
RULES_OF_THE_BUS = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/{NAME}/*"


def encrypted_only(action: str, resource: str) -> dict:
    return {
        "Sid": "EncryptedConnectionsOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": action,
        "Resource": resource,
        "Condition": {"Bool": {"aws:SecureTransport": False}},
    }


def rules_of_the_bus(stack: Stack) -> dict[str, dict]:
    rules = stack.of_type("AWS::Events::Rule").values()
    return {one["Name"]: one for one in rules if "EventPattern" in one}


def test_alerts_and_digests_go_to_the_topic(plain):
    rules = rules_of_the_bus(plain)
    patterns = {name: one["EventPattern"] for name, one in rules.items()}
    assert patterns == {f"{NAME}-alerts": ALERTS, f"{NAME}-digest": DIGEST}
    for rule in rules.values():
        assert rule["EventBusName"] == NAME
        (target,) = rule["Targets"]
        assert target["Arn"] == TOPIC
        assert target["RoleArn"] == plain.attribute("AlertsRole", "Arn")
        assert target["InputTransformer"] == {
            "InputPathsMap": {"text": "$.detail.text"},
            "InputTemplate": '"<text>"',
        }


def test_the_webhook_is_posted_the_same_as_json(full):
    rules = rules_of_the_bus(full)
    posted = {name: rules[f"{NAME}-webhook-{name}"] for name in ("alerts", "digest")}
    assert posted["alerts"]["EventPattern"] == ALERTS
    assert posted["digest"]["EventPattern"] == DIGEST
    for rule in posted.values():
        assert rule["EventBusName"] == NAME
        (target,) = rule["Targets"]
        assert target["Arn"] == full.attribute("WebhookDestination", "Arn")
        assert target["RoleArn"] == full.attribute("WebhookRole", "Arn")
        transformer = target["InputTransformer"]
        assert transformer["InputPathsMap"] == {"text": "$.detail.text"}
        # EventBridge puts quotes around a text value.
        body = transformer["InputTemplate"].replace("<text>", '"web-1: refused"')
        assert json.loads(body) == {"text": "web-1: refused"}


def test_the_webhooks_address_is_in_its_destination_alone(full):
    (destination,) = full.of_type("AWS::Events::ApiDestination").values()
    assert destination["InvocationEndpoint"] == EVERYTHING["WebhookUrl"]
    assert destination["HttpMethod"] == "POST"
    assert destination["InvocationRateLimitPerSecond"] == 1
    everything = json.dumps([full.properties(name) for name in full.resources])
    assert everything.count(EVERYTHING["WebhookUrl"]) == 1
    assert EVERYTHING["WebhookUrl"] not in json.dumps(full.outputs)


def test_the_webhooks_connection_and_destination_are_named_after_the_stack(full):
    for kind in ("Connection", "ApiDestination"):
        (named,) = full.of_type(f"AWS::Events::{kind}").values()
        assert named["Name"] == f"{NAME}-webhook"


@pytest.mark.parametrize(
    ("name", "action", "target"),
    [
        ("AlertsRole", "sns:Publish", lambda stack: TOPIC),
        (
            "WebhookRole",
            "events:InvokeApiDestination",
            lambda stack: stack.attribute("WebhookDestination", "Arn"),
        ),
    ],
)
def test_the_role_of_the_buss_rules_may_only_reach_their_target(full, name, action, target):
    role = full.properties(name)
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "events.amazonaws.com"}
    assert trust["Condition"] == {"ArnLike": {"aws:SourceArn": RULES_OF_THE_BUS}}
    (policy,) = role["Policies"]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement["Action"] == action
    assert statement["Resource"] == target(full)


@pytest.mark.parametrize(
    ("parameter", "types"),
    [
        ("WebhookUrl", {"AWS::Events::Connection", "AWS::Events::ApiDestination"}),
        ("AlertEmail", {"AWS::SNS::Subscription"}),
    ],
)
def test_what_is_optional_is_there_only_when_it_is_asked_for(parameter, types):
    def made(stack: Stack) -> set[str]:
        return {one["Type"] for one in stack.resources.values()} & types

    assert made(Stack()) == set()
    assert made(Stack(**{parameter: EVERYTHING[parameter]})) == types


def test_an_address_is_mailed_when_it_is_given(full):
    (subscription,) = full.of_type("AWS::SNS::Subscription").values()
    assert subscription == {
        "TopicArn": TOPIC,
        "Protocol": "email",
        "Endpoint": EVERYTHING["AlertEmail"],
    }


def test_only_this_stacks_alarms_may_publish_by_the_topics_policy(plain):
    (policy,) = plain.of_type("AWS::SNS::TopicPolicy").values()
    assert policy["Topics"] == [TOPIC]
    statements = {one["Sid"]: one for one in policy["PolicyDocument"]["Statement"]}
    for statement in statements.values():
        assert statement["Action"] == "sns:Publish"
        assert statement["Resource"] == TOPIC
    assert statements.pop("EncryptedConnectionsOnly") == encrypted_only("sns:Publish", TOPIC)
    # AWS's documents rule out a condition on EventBridge here: its rules use a role.
    alarms = statements.pop("AlarmsOfThisStack")
    assert statements == {}
    assert alarms["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert alarms["Condition"]["StringEquals"] == {"aws:SourceAccount": ACCOUNT}
    own = {plain.attribute(name, "Arn") for name in plain.of_type("AWS::CloudWatch::Alarm")}
    assert set(alarms["Condition"]["ArnLike"]["aws:SourceArn"]) == own


def test_every_target_of_the_buss_rules_keeps_what_it_did_not_take(full):
    rules = rules_of_the_bus(full)
    # What publish does not write is written within the hour.
    del rules[f"{NAME}-publish-events"]
    targets = [target for rule in rules.values() for target in rule["Targets"]]
    assert len(targets) == 4
    for target in targets:
        assert target["DeadLetterConfig"] == {"Arn": DEAD_LETTERS}


def test_the_queue_keeps_failures_encrypted_for_a_fortnight(plain):
    (queue,) = plain.of_type("AWS::SQS::Queue").values()
    assert queue == {
        "QueueName": f"{NAME}-dead-letters",
        "MessageRetentionPeriod": 14 * 24 * 60 * 60,
        "SqsManagedSseEnabled": True,
    }


def test_only_this_stacks_rules_may_send_to_the_queue_by_its_policy(plain):
    (policy,) = plain.of_type("AWS::SQS::QueuePolicy").values()
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "events.amazonaws.com"}
    assert statement["Action"] == "sqs:SendMessage"
    assert statement["Resource"] == DEAD_LETTERS
    rule = f"arn:aws:events:{REGION}:{ACCOUNT}:rule"
    assert statement["Condition"] == {
        "ArnLike": {
            "aws:SourceArn": [
                f"{rule}/{NAME}.*",
                f"{rule}/{NAME}/*",
            ]
        }
    }


def test_no_output_shows_a_secret():
    for name, parameter in source()["Parameters"].items():
        if parameter.get("NoEcho"):
            outputs = json.dumps(source()["Outputs"])
            assert json.dumps({"Ref": name}) not in outputs
            assert f"${{{name}}}" not in outputs
