"""The template itself rejects parameters that make no sense."""

import re

import pytest
from template import KEY, source

PARAMETERS = source()["Parameters"]
BASE_URL_TAKEN = [
    "",
    "https://api.digitalocean.com",
    "https://gateway.example.com:8443/clouds/do",
    "http://127.0.0.1:8100",
    "http://127.9.8.7",
    "http://localhost",
    "http://localhost:8100/",
    "http://[::1]:8100",
    "http://simulator:8100",
    "http://cloud-simulator:8100/base",
]
BASE_URL_REFUSED = [
    "api.digitalocean.com",
    "http://api.digitalocean.com",
    "http://api.digitalocean.com:80",
    "http://10.0.0.1:8100",
    "http://simulator",
    "http://localhost.example.com",
    "http://127.0.0.1.example.com",
    "http://localhost@example.com",
    "http://simulator:8100@example.com",
    "http://[2001:db8::1]:80",
    "https://user:password@example.com",
    "https://example.com/?query",
    "https://example.com/#fragment",
    "https://",
    "https://example.com/ x",
    " https://example.com",
    "https://example.com\n",
    "ftp://127.0.0.1",
    "file:///etc/passwd",
]
TAKEN = {
    "Architecture": ["x86_64", "arm64"],
    "Memory": ["128", "1769"],
    "Timers": ["ENABLED", "DISABLED"],
    "LogLevel": ["error", "warn", "info", "debug", "trace"],
    "LogRetentionDays": ["1", "30", "365", "3653"],
    "Protect": [
        "",
        "*",
        "name:*prod*",
        "do-main/droplet/*,name:*prod*, tag:env=production",
    ],
    "Mode": ["act", "observe"],
    "Pages": ["ENABLED", "DISABLED"],
    "AccountUrls": [
        "",
        "https://gateway.example/do",
        "https://gateway.example, https://other.example:8443",
    ],
    "TokenPath": [
        "",
        "/offhours",
        "/team/offhours/tokens",
        "/a",
        "/x-1/y_2/z.3",
        "/" + "/".join("a" * 14),
    ],
    "TokenKeyArn": [
        "",
        KEY,
        "arn:aws-cn:kms:cn-north-1:111122223333:key/0a1b2c3d-0000-4000-8000-0123456789ab",
        "arn:aws:kms:us-east-1:111122223333:key/mrk-0123456789abcdef0123456789abcdef",
    ],
    "PermissionsBoundaryArn": [
        "",
        "arn:aws:iam::111122223333:policy/boundary",
        "arn:aws:iam::aws:policy/PowerUserAccess",
        "arn:aws-cn:iam::111122223333:policy/teams/platform/boundary_1",
    ],
    "AlertEmail": ["", "ops@example.com", "night.shift+offhours@mail.example.co.uk"],
    "WebhookUrl": [
        "",
        "https://hooks.slack.com/services/T000/B000/XXXXxxxx",
        "https://chat.example.com:8443/hooks/abc?token=x_1-2&channel=ops",
        "https://chat.example.com/hooks/a%20b?token=%2Bx",
        "https://example.com",
    ],
    "DigitalOceanUrl": BASE_URL_TAKEN,
    "HetznerUrl": BASE_URL_TAKEN,
}
REFUSED = {
    "Pages": ["", "enabled", "ON"],
    "Architecture": ["", "x86-64", "aarch64", "ARM64"],
    "Memory": ["", "64", "129", "128 MB"],
    "Timers": ["", "enabled", "on"],
    "LogLevel": ["", "INFO", "verbose", "info,hyper=debug"],
    "LogRetentionDays": ["0", "2", "31", "-1", "forever"],
    "Protect": ["prod", "name:", "label:x", "name:web,", "name:web\n", "name:a b"],
    "Mode": ["", "Observe", "off"],
    "AccountUrls": [
        "http://127.0.0.1:8100",
        "gateway.example",
        "https://user:password@gateway.example",
        "https://gateway.example?x=1",
        "https://gateway.example,",
        "https://gateway.example\n",
    ],
    "TokenPath": [
        "/",
        "offhours",
        "/offhours/",
        "//offhours",
        "/off hours",
        "/offhours/*",
        "/aws/offhours",
        "/AWS",
        "/awstokens",
        "/ssm/offhours",
        "/Ssm",
        "/" + "/".join("a" * 15),
        "/" + "a" * 200,
    ],
    "TokenKeyArn": [
        "alias/offhours",
        "arn:aws:kms:eu-central-1:111122223333:alias/offhours",
        "0a1b2c3d-0000-4000-8000-0123456789ab",
        KEY + "x",
        KEY.replace("111122223333", "1111"),
        KEY.replace(":key/", ":key/*"),
    ],
    "PermissionsBoundaryArn": [
        "boundary",
        "arn:aws:iam::111122223333:role/boundary",
        "arn:aws:iam::1111:policy/boundary",
        "arn:aws:iam::111122223333:policy/*",
    ],
    "AlertEmail": [
        "ops",
        "ops@localhost",
        "@example.com",
        "a@b@example.com",
        "one@example.com,two@example.com",
        "Ops <ops@example.com>",
        "ops @example.com",
    ],
    "WebhookUrl": [
        "http://hooks.slack.com/services/T000/B000/XXXX",
        "hooks.slack.com/services/T000",
        "https://",
        "https://user:password@hooks.slack.com/services",
        "https://hooks.slack.com/a b",
        "https://hooks.slack.com/#fragment",
        "https://hooks.slack.com/\nx",
        "https://hooks.slack.com/<text>",
        # EventBridge takes a percent sign only before two hexadecimal digits.
        "https://hooks.slack.com/%zz",
        "https://hooks.slack.com/?token=%2",
        "https://hooks.slack.com/" + "a" * 2048,
    ],
    "DigitalOceanUrl": BASE_URL_REFUSED,
    "HetznerUrl": BASE_URL_REFUSED,
}


def takes(parameter: dict, value: str) -> bool:
    """Reports whether CloudFormation accepts a value: a pattern must match all of it."""
    if "AllowedValues" in parameter and value not in map(str, parameter["AllowedValues"]):
        return False
    if len(value) > parameter.get("MaxLength", len(value)):
        return False
    return re.fullmatch(parameter.get("AllowedPattern", ".*"), value, re.DOTALL) is not None


def test_every_parameter_has_values_to_take_and_to_refuse():
    assert set(PARAMETERS) == set(TAKEN) == set(REFUSED)


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in TAKEN.items() for value in values]
)
def test_what_makes_sense_is_taken(name, value):
    assert takes(PARAMETERS[name], value)


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in REFUSED.items() for value in values]
)
def test_what_makes_no_sense_is_refused(name, value):
    assert not takes(PARAMETERS[name], value)


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_can_be_left_out_and_says_what_it_is_and_what_it_takes(name):
    parameter = PARAMETERS[name]
    assert takes(parameter, str(parameter["Default"]))
    assert len(parameter["Description"]) > 20
    assert parameter["ConstraintDescription"].startswith("must be")


def test_the_webhook_is_not_shown():
    assert PARAMETERS["WebhookUrl"]["NoEcho"] is True


def test_both_providers_take_the_same_addresses():
    one, other = PARAMETERS["DigitalOceanUrl"], PARAMETERS["HetznerUrl"]
    for key in ("AllowedPattern", "ConstraintDescription", "MaxLength", "Default"):
        assert one[key] == other[key]


def test_every_parameter_is_in_one_group_and_has_a_label():
    interface = source()["Metadata"]["AWS::CloudFormation::Interface"]
    grouped = [name for group in interface["ParameterGroups"] for name in group["Parameters"]]
    assert sorted(grouped) == sorted(PARAMETERS)
    assert set(interface["ParameterLabels"]) == set(PARAMETERS)
    assert all(group["Label"]["default"] for group in interface["ParameterGroups"])
