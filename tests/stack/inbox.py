"""Queues that receive what a stack publishes: everything on its bus, or what its topic mails."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from rehearsal.emulator import Emulator


@dataclass
class Inbox:
    """A queue and what it has received so far."""

    emulator: Emulator
    url: str
    came: list[Any] = field(default_factory=list)

    @classmethod
    def on_bus(cls, emulator: Emulator, stack: str) -> Inbox:
        """Creates an inbox for all events of a stack's bus from now on."""
        inbox, arn = cls._made(emulator, f"{stack}-inbox", "events.amazonaws.com")
        events = emulator.client("events")
        rule = {"Name": f"{stack}-inbox", "EventBusName": stack}
        events.put_rule(**rule, EventPattern=json.dumps({"source": ["offhours"]}))
        targets = [{"Id": "inbox", "Arn": arn}]
        events.put_targets(Rule=rule["Name"], EventBusName=stack, Targets=targets)
        return inbox

    @classmethod
    def on_topic(cls, emulator: Emulator, topic: str) -> Inbox:
        """Creates an inbox for all messages of a topic from now on, as an e-mail subscriber's."""
        name = topic.rsplit(":", 1)[1]
        inbox, arn = cls._made(emulator, f"{name}-inbox", "sns.amazonaws.com")
        emulator.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
        return inbox

    @classmethod
    def _made(cls, emulator: Emulator, name: str, sender: str) -> tuple[Inbox, str]:
        sqs = emulator.client("sqs")
        url = sqs.create_queue(QueueName=name)["QueueUrl"]
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        arn = attributes["Attributes"]["QueueArn"]
        policy = {
            "Version": "2012-10-17",
            "Statement": {
                "Effect": "Allow",
                "Principal": {"Service": sender},
                "Action": "sqs:SendMessage",
                "Resource": arn,
            },
        }
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json.dumps(policy)})
        return cls(emulator, url), arn

    def all(self) -> list[Any]:
        """Returns everything received so far, oldest first."""
        sqs = self.emulator.client("sqs")
        while messages := sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10).get(
            "Messages"
        ):
            for message in messages:
                self.came.append(json.loads(message["Body"]))
                sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return self.came
