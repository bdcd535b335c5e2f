"""The formatting of a run's result."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import report
from .figures import targets
from .test_figures import result


@pytest.mark.parametrize(
    ("value", "shown"), [(1234.5, "1,234"), (99.96, "100.0"), (42.04, "42.0"), (0.3333, "0.33")]
)
def test_a_figure_has_the_digits_that_mean_something(value: float, shown: str) -> None:
    assert report.figure(value) == shown


def test_a_table_has_names_to_the_left_and_figures_to_the_right() -> None:
    assert report.table(["a", "b"], [["c", "1"]]) == "| a | b |\n| :-- | --: |\n| c | 1 |"


def test_a_function_is_shown_with_its_median_and_its_90th_percentile() -> None:
    found = result()
    found["subjects"]["stop"]["samples"]["warm_p50_ms"] = [3.0, 1.0, 2.0]
    row = next(line for line in report.functions(found).splitlines() if "| stop |" in line)
    assert "| 2.00 (3.00) |" in row
    assert row.endswith("| 3,000,000 |")


def test_ratios_are_those_to_each_functions_own_peer() -> None:
    found = result()
    found["subjects"]["boto3, asking"]["samples"]["memory_mib"] = [6.0] * 3
    rows = {line.split(" | ")[0].strip("| "): line for line in report.ratios(found).splitlines()}
    assert rows["start"].endswith("| 6.00 | 1.00 |")
    assert rows["dispatch"].endswith("| 1.00 | 1.00 |")


def test_a_missed_target_stands_out() -> None:
    lines = report.targets(targets(result(boto3=40))).splitlines()
    row = next(line for line in lines if line.startswith("| dispatch, cold, against its floor"))
    assert row.endswith("| at most 1.25 times | 1.00 times | met |")
    lines = report.targets(targets(result(boto3=4))).splitlines()
    row = next(line for line in lines if line.startswith("| boto3, cold, against stop"))
    assert row.endswith("| at least 40 times | 4.00 times | **missed** |")


def test_the_document_has_both_modes_and_the_notes() -> None:
    found = result(boto3=40) | {
        "machine": dict.fromkeys(("processor", "cores", "memory_gib", "system"), "x")
        | dict.fromkeys(("rust", "python", "packages"), "y"),
        "commit": "0123456789ab",
        "date": "2026-11-23",
        "command": "make bench ROUNDS=3",
        "rounds": 3,
        "warm": 200,
        "seed": 1,
        "evaluators": {
            "zone": "Europe/Berlin",
            "count": 20_000,
            "nanoseconds": {"ours": [100, 200, 400], "ported": [1000, 6000, 8000]},
        },
    }
    text = report.document(found, None, None, "## Notes\n\nWhy.\n", "![Cold](docs/cold.svg)", "")
    assert "![Cold](docs/cold.svg)" in text
    assert "takes 20.0 times as long" in text
    assert text.endswith("## Notes\n\nWhy.\n")
    assert "Over TLS" not in text
    over_tls = found | {"command": "make bench TLS=1", "commit": "ba9876543210"}
    text = report.document(found, over_tls, None, "", "", "")
    assert "Made by `make bench TLS=1` at ba9876543210" in text
    others = over_tls | {"subjects": {"empty": found["subjects"]["dispatch"]}}
    assert "Over TLS" not in report.document(found, others, None, "", "", "")


def test_the_notes_are_edited_where_the_document_is_made_from() -> None:
    root = Path(__file__).resolve().parents[2]
    notes = (root / "docs" / "benchmarks" / "notes.md").read_text()
    assert (root / "BENCHMARKS.md").read_text().endswith(notes)
