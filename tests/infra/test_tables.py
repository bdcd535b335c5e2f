"""The tables: the same as the store creates elsewhere, and safe from loss."""

import re

from template import NAME, STORE, source

TABLES = {f"{NAME}-schedules", f"{NAME}-accounts", f"{NAME}-resources", f"{NAME}-history"}


def tables(stack) -> dict[str, dict]:
    return {one["TableName"]: one for one in stack.of_type("AWS::DynamoDB::Table").values()}


def key(schema: list[dict]) -> dict[str, str]:
    return {one["KeyType"]: one["AttributeName"] for one in schema}


def keys_in_code() -> dict[str, dict[str, str]]:
    """Returns the keys with which the store creates its own tables."""
    code = (STORE / "tables.rs").read_text()
    layouts = re.findall(r'\(&tables\.(\w+), "(\w+)", "(\w+)"\)', code)
    return {f"{NAME}-{table}": {"HASH": one, "RANGE": other} for table, one, other in layouts}


def test_the_keys_are_those_that_the_store_makes_elsewhere(plain):
    assert set(tables(plain)) == TABLES
    assert {name: key(one["KeySchema"]) for name, one in tables(plain).items()} == keys_in_code()


def test_the_index_is_the_one_that_the_store_makes_elsewhere(plain):
    (name,) = re.findall(r'DUE_INDEX: &str = "(\w+)"', (STORE / "item.rs").read_text())
    code = (STORE / "tables.rs").read_text()
    index_in_code = {
        kind.upper(): attribute
        for attribute, kind in re.findall(r'\.key_schema\(key\("(\w+)", KeyType::(\w+)\)', code)
    }
    indexes = {
        table: one["GlobalSecondaryIndexes"]
        for table, one in tables(plain).items()
        if "GlobalSecondaryIndexes" in one
    }
    assert set(indexes) == {f"{NAME}-resources"}
    (index,) = indexes[f"{NAME}-resources"]
    assert index["IndexName"] == name
    assert key(index["KeySchema"]) == index_in_code
    assert index["Projection"] == {"ProjectionType": "ALL"}
    assert "ProjectionType::All" in code


def test_only_keys_are_declared_and_only_the_instant_is_a_number(plain):
    for name, table in tables(plain).items():
        schemas = [table["KeySchema"]]
        schemas += [one["KeySchema"] for one in table.get("GlobalSecondaryIndexes", [])]
        keys = {attribute for schema in schemas for attribute in key(schema).values()}
        types = {
            one["AttributeName"]: one["AttributeType"] for one in table["AttributeDefinitions"]
        }
        assert types == {one: "N" if one == "due_ms" else "S" for one in keys}, name


def test_every_table_costs_by_use_and_is_safe_from_loss(plain):
    for name, table in tables(plain).items():
        assert table["BillingMode"] == "PAY_PER_REQUEST", name
        assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
        assert table["SSESpecification"] == {"SSEEnabled": True}, name
        assert table["DeletionProtectionEnabled"] is True, name


def test_a_stack_that_goes_leaves_its_tables():
    for name, resource in source()["Resources"].items():
        if resource["Type"] == "AWS::DynamoDB::Table":
            assert resource["DeletionPolicy"] == "Retain", name
            assert resource["UpdateReplacePolicy"] == "Retain", name


def test_history_alone_expires_and_by_the_attribute_that_the_store_writes(plain):
    expiring = {
        name: one["TimeToLiveSpecification"]
        for name, one in tables(plain).items()
        if "TimeToLiveSpecification" in one
    }
    assert expiring == {f"{NAME}-history": {"AttributeName": "expires_at", "Enabled": True}}
    assert 'Item::from([("expires_at".to_owned()' in (STORE / "item.rs").read_text()
