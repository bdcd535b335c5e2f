"""The webhook's connection, destination and rules.

ministack's CloudFormation has neither connections nor destinations, so the test creates them
through the events API, from the template's own properties.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import roles
from conftest import Deployed
from emulators import deploying_webhooks
from paths import expect
from places import TEMPLATE
from rehearsal.emulator import Emulator
from rehearsal.stack import deploy, parameters


class Webhook:
    """An address that accepts posts as Slack does."""

    def __init__(self) -> None:
        self.posts: list[tuple[Message, Any]] = []
        posts = self.posts

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                posts.append((self.headers, json.loads(body)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    webhook = Webhook()
    thread = threading.Thread(target=webhook.server.serve_forever, daemon=True)
    thread.start()
    yield webhook
    webhook.server.shutdown()


def test_alerts_and_digests_are_posted_as_slack_reads_them(
    cycled: Deployed, packaged: Path, webhook: Webhook
) -> None:
    stack = cycled.stack
    events = stack.emulator.client("events")
    template = roles.read(packaged)["Resources"]
    # What the template refers to, as it is in this stack; only the webhook's address differs.
    known = {
        "WebhookConnection": {},
        "WebhookDestination": {},
        "WebhookUrl": webhook.url,
        "WebhookRole": {"Arn": _role(cycled)},
        "Bus": stack.name,
        "AWS::StackName": stack.name,
        "DeadLetters": {"Arn": _dead_letters(cycled)},
    }
    connection = resolved(template["WebhookConnection"]["Properties"], known)
    known["WebhookConnection"] = {"Arn": events.create_connection(**connection)["ConnectionArn"]}
    destination = resolved(template["WebhookDestination"]["Properties"], known)
    made = events.create_api_destination(**destination)
    known["WebhookDestination"] = {"Arn": made["ApiDestinationArn"]}
    for rule in ("WebhookTroubleRule", "WebhookDigestRule"):
        properties = resolved(template[rule]["Properties"], known)
        targets = properties.pop("Targets")
        pattern = json.dumps(properties.pop("EventPattern"))
        events.put_rule(**properties, EventPattern=pattern)
        events.put_targets(
            Rule=properties["Name"],
            EventBusName=properties["EventBusName"],
            Targets=targets,
        )

    # Provoke a refusal: the provider refuses the next change. While one is under way, or dispatch
    # was first, nothing is sent.
    droplet = "do-main/droplet/3164444"
    cycled.simulator.refuse_next_change(droplet)

    def posted() -> bool:
        status = cycled.simulator.resources()[droplet]["status"]
        stack.invoke("stop" if status == "active" else "start", {"resources": [droplet]})
        return any("web-1" in body["text"] for _, body in webhook.posts)

    expect(posted, "the post of a refusal", patience=240)
    headers, body = webhook.posts[0]
    assert body.keys() == {"text"}
    assert "refused" in body["text"]
    assert headers["x-offhours"] == stack.name


@deploying_webhooks
def test_a_stack_with_a_webhook_deploys(emulator: Emulator, sam: Path) -> None:
    url = "https://hooks.example.com/services/T0/B0/secret"
    given = parameters("http://127.0.0.1:9", Timers="DISABLED", WebhookUrl=url)
    deploy(emulator, sam, TEMPLATE, "hooked", given)
    events = emulator.client("events")
    (destination,) = events.list_api_destinations(NamePrefix="hooked-")["ApiDestinations"]
    assert destination["InvocationEndpoint"] == url
    for rule in ("hooked-webhook-alerts", "hooked-webhook-digest"):
        (target,) = events.list_targets_by_rule(Rule=rule, EventBusName="hooked")["Targets"]
        assert target["Arn"] == destination["ApiDestinationArn"]


def resolved(value: Any, known: dict[str, Any]) -> Any:
    """Returns a part of a template with `Ref`, `Fn::GetAtt` and `Fn::Sub` resolved."""
    if isinstance(value, list):
        return [resolved(one, known) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"Ref"}:
        return known[value["Ref"]]
    if value.keys() == {"Fn::GetAtt"}:
        name, attribute = value["Fn::GetAtt"]
        return known[name][attribute]
    if value.keys() == {"Fn::Sub"}:
        text = value["Fn::Sub"]
        for name, meaning in known.items():
            if isinstance(meaning, str):
                text = text.replace(f"${{{name}}}", meaning)
        return text
    return {key: resolved(one, known) for key, one in value.items()}


def _dead_letters(deployed: Deployed) -> str:
    sqs = deployed.stack.emulator.client("sqs")
    url = sqs.get_queue_url(QueueName=f"{deployed.stack.name}-dead-letters")["QueueUrl"]
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return attributes["Attributes"]["QueueArn"]


def _role(deployed: Deployed) -> str:
    """Creates a role that rules can assume, like the template's."""
    trust = {
        "Version": "2012-10-17",
        "Statement": {
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sts:AssumeRole",
        },
    }
    iam = deployed.stack.emulator.client("iam")
    role = iam.create_role(RoleName="webhook", AssumeRolePolicyDocument=json.dumps(trust))
    return role["Role"]["Arn"]
