"""Does what poll-status does when asked for the state of one Droplet, with boto3 and urllib3."""

import json
import os

import boto3
import urllib3
from boto3.dynamodb.types import TypeDeserializer

PREFIX = os.environ["OFFHOURS_TABLE_PREFIX"]
CLOUD = os.environ["OFFHOURS_DIGITALOCEAN_URL"]

dynamodb = boto3.client("dynamodb")
cloud = urllib3.PoolManager()
plain = TypeDeserializer()
known = {}


def handler(event, context):
    """Returns the status of the resources that the event names."""
    head = next(item for item in partition("schedules", "head") if item["name"] == "head")
    configuration = configuration_of(head)
    outcomes = [status(reference, configuration) for reference in event["resources"]]
    return {"outcomes": outcomes, "in_flight": 0}


def partition(table, key):
    """Returns the items under one key."""
    answer = dynamodb.query(
        TableName=PREFIX + table,
        KeyConditionExpression="#key = :key",
        ExpressionAttributeNames={"#key": "generation_key"},
        ExpressionAttributeValues={":key": {"S": key}},
        ConsistentRead=True,
    )
    return [item_of(item) for item in answer["Items"]]


def item_of(item):
    """Converts an item to plain values."""
    return {name: plain.deserialize(value) for name, value in item.items()}


def configuration_of(head):
    """Returns the schedules and accounts in force, read once per generation."""
    generation = f"generation#{int(head['generation']):012}"
    if generation not in known:
        known.clear()
        known[generation] = {
            "schedules": partition("schedules", generation),
            "accounts": {one["name"]: one["body"] for one in partition("accounts", generation)},
        }
    return known[generation]


def status(reference, configuration):
    """Returns one Droplet's name from its record and its current state in the cloud."""
    account, resource = reference.split("/", 1)
    read = dynamodb.get_item(
        TableName=f"{PREFIX}resources",
        Key={"account": {"S": account}, "resource": {"S": resource}},
        ConsistentRead=True,
    )
    record = item_of(read["Item"])
    variable = configuration["accounts"][account]["token"].removeprefix("env:")
    answer = cloud.request(
        "GET",
        f"{CLOUD}/v2/droplets/{resource.split('/')[1]}",
        headers={"Authorization": f"Bearer {os.environ[variable]}"},
        retries=False,
        timeout=10,
    )
    droplet = json.loads(answer.data)["droplet"]
    running = "running" if droplet["status"] == "active" else "stopped"
    return {
        "resource": reference,
        "name": record["name"],
        "event": "status",
        "state": f"{running}, {droplet['size_slug']}",
    }
