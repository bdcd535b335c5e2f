"""Does what dispatch does in a tick, with boto3 alone."""

import json
import os
import time

import boto3

PREFIX = os.environ["OFFHOURS_TABLE_PREFIX"]
# The same as dispatch's.
BATCH = 1000

dynamodb = boto3.client("dynamodb")
functions = None


def handler(event, context):
    """Handles one tick of the timer."""
    return tick()


def tick():
    """Reads what is in force and what is due, and hands out the due work."""
    in_force = query(
        TableName=f"{PREFIX}schedules",
        KeyConditionExpression="#key = :key",
        ExpressionAttributeNames={"#key": "generation_key"},
        ExpressionAttributeValues={":key": {"S": "head"}},
        ConsistentRead=True,
    )
    due = query(
        TableName=f"{PREFIX}resources",
        IndexName="due",
        KeyConditionExpression="#due = :due AND due_ms <= :now",
        ExpressionAttributeNames={"#due": "due"},
        ExpressionAttributeValues={
            ":due": {"S": "due"},
            ":now": {"N": str(int(time.time() * 1000))},
        },
    )
    held = {item["name"]["S"] for item in in_force if "until" in item}
    starts, stops = decide(due, held)
    for function, references in (("start", starts), ("stop", stops)):
        for index in range(0, len(references), BATCH):
            hand_out(function, references[index : index + BATCH])
    return {"starts": starts, "stops": stops, "postponed": 0, "unobserved": 0}


def query(**request):
    """Returns the items of all pages."""
    items = []
    while True:
        answer = dynamodb.query(**request)
        items += answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return items
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def decide(due, held):
    """Returns what to start and what to stop: each into the opposite of its observed state."""
    starts, stops = [], []
    for item in due:
        reference = f"{item['account']['S']}/{item['resource']['S']}"
        if f"override#{reference}" in held or not item["opted_in"]["BOOL"]:
            continue
        stopped = item["observed"]["M"]["power"]["S"] == "stopped"
        (starts if stopped else stops).append(reference)
    return starts, stops


def hand_out(function, references):
    """Invokes stop or start without waiting for it."""
    global functions
    functions = functions or boto3.client("lambda")
    functions.invoke(
        FunctionName=os.environ[f"OFFHOURS_{function.upper()}_FUNCTION"],
        InvocationType="Event",
        Payload=json.dumps({"cause": "due", "resources": references}),
    )
