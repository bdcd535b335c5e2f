"""What there is to look at is published only where it is asked for, and is private."""

import json
import re

from template import ACCOUNT, NAME, REGION, Stack

PUBLISHED = Stack(Pages="ENABLED")
EVENTS = f"arn:aws:events:{REGION}:{ACCOUNT}:rule"


def test_nothing_is_published_unless_it_is_asked_for(plain):
    assert not plain.of_type("AWS::S3::Bucket")
    assert "Publish" not in plain.of_type("AWS::Lambda::Function")
    assert not [name for name in plain.resources if name.startswith(("Publish", "Pages"))]
    assert "PagesBucket" not in plain.outputs


def test_the_bucket_is_private_encrypted_and_kept_and_forgets_after_thirteen_months():
    bucket = PUBLISHED.properties("PagesBucket")
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    (encryption,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert encryption["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    assert bucket["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    (rule,) = bucket["LifecycleConfiguration"]["Rules"]
    assert (rule["Status"], rule["ExpirationInDays"]) == ("Enabled", 396)
    assert "BucketName" not in bucket
    # A bucket that is not empty cannot be deleted: the stack could not be, either.
    assert PUBLISHED.resources["PagesBucket"]["DeletionPolicy"] == "Retain"


def test_the_bucket_accepts_encrypted_connections_alone():
    (statement,) = PUBLISHED.properties("PagesBucketPolicy")["PolicyDocument"]["Statement"]
    arn = PUBLISHED.attribute("PagesBucket", "Arn")
    assert (statement["Effect"], statement["Principal"]) == ("Deny", "*")
    assert statement["Action"] == "s3:*"
    assert statement["Resource"] == [arn, f"{arn}/*"]
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": False}}


def test_it_is_written_hourly_and_after_each_edge_and_change():
    rules = PUBLISHED.of_type("AWS::Events::Rule")
    hourly = next(one for one in rules.values() if one["Name"] == f"{NAME}-publish")
    assert hourly["ScheduleExpression"] == "cron(7 * * * ? *)"
    assert hourly["State"] == "ENABLED"
    after = rules["PublishRule"]
    assert after["EventBusName"] == NAME
    assert "Edge Completed" in after["EventPattern"]["detail-type"]
    function = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{NAME}-publish"
    for rule in (hourly, after):
        (target,) = rule["Targets"]
        assert target["Arn"] == function
        assert target["RetryPolicy"]["MaximumRetryAttempts"] == 0
    permissions = PUBLISHED.of_type("AWS::Lambda::Permission").values()
    allowed = {one["SourceArn"] for one in permissions if one["FunctionName"] == f"{NAME}-publish"}
    assert allowed == {f"{EVENTS}/{NAME}-publish", f"{EVENTS}/{NAME}/{NAME}-publish-events"}
    paused = Stack(Pages="ENABLED", Timers="DISABLED").of_type("AWS::Events::Rule").values()
    assert {one["State"] for one in paused if "ScheduleExpression" in one} == {"DISABLED"}


def test_the_function_knows_its_bucket():
    function = PUBLISHED.properties("Publish")
    host = f"{NAME}-PagesBucket.s3.{REGION}.amazonaws.com"
    assert function["Environment"]["Variables"]["OFFHOURS_BUCKET"] == host
    assert (function["MemorySize"], function["Timeout"]) == (512, 120)


def first_row(stack: Stack) -> dict:
    (dashboard,) = stack.of_type("AWS::CloudWatch::Dashboard").values()
    (first,) = [one for one in json.loads(dashboard["DashboardBody"])["widgets"] if one["y"] == 0]
    assert first["width"] == 24
    return first


def test_the_first_row_of_the_dashboard_shows_what_the_function_has_logged(plain):
    shown = first_row(PUBLISHED)
    assert shown["type"] == "log"
    source, fields, *_ = shown["properties"]["query"].split(" | ")
    assert source == f"SOURCE '{PUBLISHED.properties('PublishLog')['LogGroupName']}'"
    assert fields.startswith("fields @timestamp, off, hours_off, saved\n")
    # Without the function there is no such log.
    assert first_row(plain)["type"] == "text"
    assert "Pages=ENABLED" in first_row(plain)["properties"]["markdown"]


def test_viewers_may_read_every_log_that_the_dashboard_shows():
    (dashboard,) = PUBLISHED.of_type("AWS::CloudWatch::Dashboard").values()
    groups = set(re.findall(r"SOURCE '([^']+)'", dashboard["DashboardBody"]))
    assert len(groups) > 1, dashboard["DashboardBody"]
    statements = PUBLISHED.properties("ViewerPolicy")["PolicyDocument"]["Statement"]
    (logs,) = [one for one in statements if one["Sid"] == "ReadLogs"]
    assert groups <= {arn.split(":")[6] for arn in logs["Resource"]}
