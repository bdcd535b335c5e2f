"""Two stacks in one account and region, one of whose names begins with the other's."""

import itertools
import re

import pytest
from template import EVERYTHING, Stack

NAMES = ("offhours", "offhours-dev")
#: What people add to a stack: a rule of their own, and tokens.
OWN_RULE = "arn:aws:events:{}:{}:rule/{}.lunch"
OWN_TOKENS = tuple(
    f"arn:aws:ssm:{{}}:{{}}:parameter/{{}}/{token}" for token in ("do", "acting/do", "reading/do")
)


@pytest.fixture(scope="module")
def stacks() -> dict[str, Stack]:
    return {name: Stack(name, **EVERYTHING) for name in NAMES}


def patterns(one) -> set[str]:
    """Returns all ARNs that a policy document or a permission names."""
    if isinstance(one, dict):
        return set().union(*(patterns(value) for value in one.values()))
    if isinstance(one, list):
        return set().union(*(patterns(value) for value in one))
    return {one} if isinstance(one, str) and one.startswith("arn:") else set()


def named_by(stack: Stack) -> set[str]:
    """Returns the ARNs in all policies and permissions of a stack."""
    found = set()
    for name, one in stack.resources.items():
        properties = stack.properties(name)
        if one["Type"] == "AWS::Lambda::Permission":
            found |= patterns(properties["SourceArn"])
        for key in ("AssumeRolePolicyDocument", "Policies", "PolicyDocument"):
            found |= patterns(properties.get(key, {}))
    return found - {EVERYTHING["TokenKeyArn"]}


def resources_of(stack: Stack) -> set[str]:
    """Returns the ARNs of a stack's resources, and of what people add to it."""
    region, account = stack.pseudo["AWS::Region"], stack.pseudo["AWS::AccountId"]
    found = {form.format(region, account, stack.name) for form in (OWN_RULE, *OWN_TOKENS)}
    for name, one in stack.resources.items():
        kind = one["Type"]
        if kind == "AWS::Events::Rule" and "EventBusName" in (rule := stack.properties(name)):
            place = f"{rule['EventBusName']}/{rule['Name']}"
            found.add(f"arn:aws:events:{region}:{account}:rule/{place}")
        elif kind == "AWS::CloudWatch::Dashboard":
            found.add(f"arn:aws:cloudwatch::{account}:dashboard/{stack.physical(name)}")
        elif kind == "AWS::S3::Bucket":
            arn = stack.attribute(name, "Arn")
            found |= {arn, f"{arn}/calendar.ics"}
        elif kind in WITH_ARN:
            found.add(stack.attribute(name, "Arn").removesuffix(":*"))
    return found


WITH_ARN = {
    "AWS::CloudWatch::Alarm",
    "AWS::DynamoDB::Table",
    "AWS::Events::ApiDestination",
    "AWS::Events::EventBus",
    "AWS::Events::Rule",
    "AWS::Lambda::Function",
    "AWS::Logs::LogGroup",
    "AWS::SNS::Topic",
    "AWS::SQS::Queue",
}


def matches(pattern: str, resource: str) -> bool:
    """Reports whether a policy's pattern, or what is below it, includes a resource."""
    parts = (re.escape(part) for part in pattern.split("*"))
    return re.fullmatch(".*".join(parts) + "([:/].*)?", resource) is not None


def test_what_a_stack_names_is_its_own(stacks):
    for stack in stacks.values():
        own = resources_of(stack)
        for pattern in named_by(stack):
            below = pattern.partition("/index/")[0].removesuffix(":*")
            assert any(matches(below, one) for one in own), pattern


@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(NAMES)))
def test_no_statement_of_one_stack_matches_anything_of_the_other(stacks, one, other):
    for pattern, resource in itertools.product(named_by(stacks[one]), resources_of(stacks[other])):
        assert not matches(pattern, resource), (pattern, resource)


def test_the_tokens_are_below_the_stacks_name_unless_a_path_is_given():
    assert Stack("offhours-dev").outputs["TokenPath"]["Value"] == "/offhours-dev"
    assert Stack("offhours-dev", TokenPath="/team/dev").outputs["TokenPath"]["Value"] == "/team/dev"


@pytest.mark.parametrize(
    ("partition", "host"),
    [
        ("aws", "eu-central-1.console.aws.amazon.com"),
        ("aws-cn", "eu-central-1.console.amazonaws.cn"),
        ("aws-us-gov", "eu-central-1.console.amazonaws-us-gov.com"),
    ],
)
def test_the_dashboard_is_at_the_console_of_the_partition(partition, host):
    url = Stack(partition=partition).outputs["DashboardUrl"]["Value"]
    assert url.startswith(f"https://{host}/cloudwatch/home?region=eu-central-1#dashboards/")
