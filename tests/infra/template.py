"""The template as AWS would see it: transformed by the real transform, every reference resolved."""

from __future__ import annotations

import re
from pathlib import Path

from samcli.yamlhelper import yaml_parse
from samtranslator.translator.transform import transform

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "infra" / "template.yaml"
#: The code of the store, whose tables the template creates on AWS.
STORE = ROOT / "crates" / "store" / "src"

NAME = "night"
REGION = "eu-central-1"
ACCOUNT = "111122223333"
PSEUDO = {
    "AWS::Region": REGION,
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::URLSuffix": "amazonaws.com",
}
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0a1b2c3d-0000-4000-8000-0123456789ab"
#: Parameters that make every condition true.
EVERYTHING = {
    "AlertEmail": "ops@example.com",
    "WebhookUrl": "https://hooks.example.com/services/T0/B0/secret",
    "TokenKeyArn": KEY,
    "PermissionsBoundaryArn": f"arn:aws:iam::{ACCOUNT}:policy/boundary",
    "Pages": "ENABLED",
}
NOTHING = object()


class NoManagedPolicies:
    """Loads nothing: the template uses none of AWS's own policies."""

    def load(self) -> dict:
        return {}


def source() -> dict:
    """Returns the template as written."""
    return yaml_parse(SOURCE.read_text())


class Stack:
    """A stack with this name and these parameters."""

    def __init__(self, stack_name: str = NAME, partition: str = "aws", **parameters: str):
        self.name = stack_name
        self.pseudo = PSEUDO | {"AWS::StackName": stack_name, "AWS::Partition": partition}
        template = source()
        self.code = {}
        for name, resource in template["Resources"].items():
            if resource["Type"] == "AWS::Serverless::Function":
                self.code[name] = resource["Properties"]["CodeUri"]
                # Packaging replaces the folder before the transform runs.
                resource["Properties"]["CodeUri"] = "s3://bucket/key"
        self.declared = template["Parameters"]
        self.parameters = {
            name: parameters.get(name, str(one["Default"])) for name, one in self.declared.items()
        }
        self.transformed = transform(template, dict(self.parameters), NoManagedPolicies())
        written = self.transformed["Conditions"]
        self.conditions = {name: self.value(one) for name, one in written.items()}
        self.resources = {
            name: one
            for name, one in self.transformed["Resources"].items()
            if self.conditions.get(one.get("Condition"), True)
        }
        outputs = self.transformed["Outputs"].items()
        self.outputs = self.value(
            {name: one for name, one in outputs if self.conditions.get(one.get("Condition"), True)}
        )

    def of_type(self, kind: str) -> dict[str, dict]:
        """Returns the properties of all resources of a type, by logical name."""
        return {
            name: self.properties(name)
            for name, one in self.resources.items()
            if one["Type"] == kind
        }

    def properties(self, name: str) -> dict:
        """Returns a resource's properties, resolved."""
        return self.value(self.resources[name]["Properties"])

    def value(self, written):
        """Evaluates an expression of the template."""
        if isinstance(written, list):
            values = (self.value(one) for one in written)
            return [one for one in values if one is not NOTHING]
        if not isinstance(written, dict):
            return written
        if len(written) == 1:
            ((function, argument),) = written.items()
            if function == "Ref":
                return self.reference(argument)
            if function.startswith("Fn::"):
                return self.call(function.removeprefix("Fn::"), argument)
        values = {key: self.value(one) for key, one in written.items()}
        return {key: one for key, one in values.items() if one is not NOTHING}

    def call(self, function: str, argument):
        if function == "Sub":
            text, own = (argument, {}) if isinstance(argument, str) else argument
            own = self.value(own)
            return re.sub(r"\$\{([^}]+)\}", lambda found: self.named(found[1], own), text)
        if function == "GetAtt":
            parts = argument.split(".") if isinstance(argument, str) else argument
            return self.attribute(*parts)
        if function == "If":
            condition, yes, no = argument
            return self.value(yes if self.conditions[condition] else no)
        if function == "Equals":
            one, other = self.value(argument)
            return one == other
        if function == "Not":
            return not self.value(argument)[0]
        raise AssertionError(f"Fn::{function} is not known here")

    def named(self, name: str, own: dict[str, str]) -> str:
        if name in own:
            return own[name]
        return str(self.attribute(*name.split(".")) if "." in name else self.reference(name))

    def reference(self, name: str):
        if name == "AWS::NoValue":
            return NOTHING
        if name in self.pseudo:
            return self.pseudo[name]
        if name in self.parameters:
            return self.parameters[name]
        kind = self.transformed["Resources"][name]["Type"]
        if kind in ("AWS::SNS::Topic", "AWS::IAM::ManagedPolicy"):
            return self.attribute(name, "Arn")
        if kind == "AWS::SQS::Queue":
            return f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{self.physical(name)}"
        return self.physical(name)

    def physical(self, name: str) -> str:
        """Returns a resource's physical name; generated names are the logical ones here."""
        properties = self.transformed["Resources"][name]["Properties"]
        for key in NAME_PROPERTIES:
            if key in properties:
                return self.value(properties[key])
        return f"{self.name}-{name}"

    def attribute(self, name: str, attribute: str) -> str:
        if attribute == "QueueName":
            return self.physical(name)
        if attribute == "RegionalDomainName":
            return f"{self.physical(name)}.s3.{REGION}.amazonaws.com"
        assert attribute == "Arn", f"{name}.{attribute} is not known here"
        kind = self.transformed["Resources"][name]["Type"]
        if kind == "AWS::S3::Bucket":
            # Names of buckets are unique in the world, so their ARNs have no region and no account.
            return f"arn:aws:s3:::{self.physical(name)}"
        service, form = ARNS[kind]
        region = "" if service == "iam" else REGION
        return f"arn:aws:{service}:{region}:{ACCOUNT}:{form.format(self.physical(name))}"


NAME_PROPERTIES = (
    "FunctionName",
    "TableName",
    "QueueName",
    "TopicName",
    "LogGroupName",
    "AlarmName",
    "DashboardName",
    "Name",
)
ARNS = {
    "AWS::CloudWatch::Alarm": ("cloudwatch", "alarm:{}"),
    "AWS::DynamoDB::Table": ("dynamodb", "table/{}"),
    "AWS::Events::ApiDestination": ("events", "api-destination/{}"),
    "AWS::Events::Connection": ("events", "connection/{}"),
    "AWS::Events::EventBus": ("events", "event-bus/{}"),
    "AWS::Events::Rule": ("events", "rule/{}"),
    "AWS::IAM::ManagedPolicy": ("iam", "policy/{}"),
    "AWS::IAM::Role": ("iam", "role/{}"),
    "AWS::Lambda::Function": ("lambda", "function:{}"),
    "AWS::Logs::LogGroup": ("logs", "log-group:{}:*"),
    "AWS::SNS::Topic": ("sns", "{}"),
    "AWS::SQS::Queue": ("sqs", "{}"),
}
