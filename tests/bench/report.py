"""Formats a run's result: BENCHMARKS.md, and what `make bench` prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import scaled
from .figures import (
    AGAINST_FLOOR,
    BOTO3,
    FLOOR,
    MEASURES,
    OURS,
    SUBJECTS,
    Result,
    Target,
    above_floor,
    cold,
    median,
    percentile,
)
from .figures import ratio as ratio_of
from .figures import targets as targets_of

WHAT = {
    "dispatch": "ours: a tick in which nothing is due",
    "poll-status": "ours: a question about one Droplet",
    "stop": "ours: the dry run of a command for one Droplet",
    "start": "ours: the dry run of a command for one Droplet",
    "floor-dispatch": "the request of that tick, with the same client, and nothing else",
    "floor-asking": "the requests about that Droplet, with the same clients, and nothing else",
    "boto3": "Python, boto3: what dispatch does in this tick",
    "boto3, asking": "Python, boto3 and urllib3: what poll-status does for this question",
    "powertools": "the same as `boto3`, with the logger, metrics and event of Powertools",
}


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Formats a Markdown table, with names on the left and figures on the right."""
    under = [":--", *["--:" for _ in headings[1:]]]
    lines = [headings, under, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def figure(value: float) -> str:
    """Formats a number with three significant digits, and without a fraction from 100 up."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def functions(result: Result) -> str:
    """Formats each function's medians, with the 90th percentiles beside them."""
    rows = []
    for name in SUBJECTS:
        subject = result["subjects"][name]
        cells = [
            f"{figure(median(values))} ({figure(percentile(values, 90))})"
            for values in (subject["samples"][measure] for measure in MEASURES)
        ]
        rows.append([name, *cells, f"{subject['zip_bytes']:,}"])
    return table(["function", *MEASURES.values(), "zip, B"], rows)


def ratios(result: Result) -> str:
    """Formats each of our functions relative to the floor, and its peer relative to ours."""
    samples = {name: one["samples"] for name, one in result["subjects"].items()}
    rows = []
    for name in OURS:
        ours, floor, peer = samples[name], samples[FLOOR[name]], samples[BOTO3[name]]
        of_peer = [
            ratio_of(cold(peer), cold(ours)),
            *(
                ratio_of(peer[measure], ours[measure])
                for measure in ("warm_p50_ms", "cpu_ms", "memory_mib")
            ),
            ratio_of(peer["warm_p50_ms"], floor["warm_p50_ms"]),
        ]
        of_floor = [figure(times) for times in above_floor(result, name)]
        rows.append([name, *of_floor, BOTO3[name], *[figure(times) for times in of_peer]])
    first, *others = AGAINST_FLOOR
    headings = [
        "function",
        f"ours ÷ floor: {first}",
        *others,
        "peer",
        "peer ÷ ours: cold",
        "warm",
        "CPU",
        "memory",
        "peer ÷ floor: warm",
    ]
    return table(headings, rows)


def evaluators(result: Result) -> str:
    """Formats the nanoseconds for one evaluation of one schedule."""
    found = result["evaluators"]
    rows = [
        [name, figure(median(values)), figure(percentile(values, 90))]
        for name, values in found["nanoseconds"].items()
    ]
    ours, theirs = found["nanoseconds"].values()
    times = figure(ratio_of(theirs, ours))
    head = table(["evaluator", "median, ns", "p90, ns"], rows)
    return f"{head}\n\nInstance Scheduler's evaluation takes {times} times as long as ours."


def targets(found: Iterable[Target]) -> str:
    """Formats each target, and whether it is met."""
    rows = []
    for target in found:
        bound = "at most" if target.at_most else "at least"
        rows.append(
            [
                target.what,
                f"{bound} {target.limit:g} {target.unit}".rstrip(),
                f"{figure(target.found)} {target.unit}".rstrip(),
                "met" if target.met else "**missed**",
            ]
        )
    return table(["target", "wanted", "measured", ""], rows)


def conditions(result: Result) -> str:
    """Formats where, when and how a run was made."""
    machine = result["machine"]
    rows = [
        [
            "machine",
            f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB",
        ],
        ["system", machine["system"]],
        ["versions", f"{machine['rust']}; Python {machine['python']}; {machine['packages']}"],
        ["commit", result["commit"]],
        ["date", result["date"]],
        ["command", f"`{result['command']}`"],
        ["rounds", f"{result['rounds']}, each with {result['warm']} warm invocations"],
        ["seed", str(result["seed"])],
    ]
    return table(["", ""], rows)


def over_tls(result: Result | None) -> str:
    """Formats the figures of a run that reached DynamoDB over TLS. Leaves out those of a run that
    measured other functions."""
    if result is None or result["subjects"].keys() != set(SUBJECTS):
        return ""
    words = (
        "DynamoDB behind TLS, with a certificate of the run's own beside those that each trusts at "
        "AWS: ours Amazon's five roots, boto3 all public ones. The clouds and the runtime API are "
        "reached as before."
    )
    made = f"Made by `{result['command']}` at {result['commit']} on {result['date']}."
    return "\n\n".join(["## Over TLS", words, functions(result), ratios(result), made])


def of_scale(result: Result | None, images: str) -> str:
    """Formats what an edge of every resource takes, from small fleets to large ones."""
    if result is None:
        return ""
    sizes = scaled.filled(result)
    course, units_each = (
        table([heading for heading, _ in columns], scaled.rows(sizes, columns))
        for columns in scaled.tables().values()
    )
    made = f"Made by `{result['command']}` at {result['commit']} on {result['date']}."
    words = (
        "All resources have an edge at the same minute: half of them Droplets, half of them "
        "servers, up to 500 in an account and 20 in a schedule. The four functions run in one "
        "process on a stepped clock (`offhours local`), beside the engine and the clouds in "
        "processes of their own, which count requests and capacity, and refuse what their limits "
        "forbid. Milliseconds are processor time of that one process, in an optimized build; an "
        "inventory is one of all accounts, a stop lasts from the edge until all was seen. A "
        "request is a change or the look before it; the floor is what the clouds' limits make of "
        "it."
    )
    capacity = "DynamoDB's units for each resource, by table:"
    return "\n\n".join(
        [
            "## Scale",
            words,
            course,
            images,
            capacity,
            units_each,
            scaled.indexed(sizes[-1]),
            targets(scaled.targets(sizes[-1])),
            made,
        ]
    )


def document(
    result: Result,
    tls: Result | None,
    scale: Result | None,
    notes: str,
    images: str,
    images_of_scale: str,
) -> str:
    """Formats BENCHMARKS.md; `notes` is people's text about it, kept unchanged."""
    subjects = table(["function", "what it does"], [[name, WHAT[name]] for name in SUBJECTS])
    command = f"Made by `{result['command']}`."
    sections = [
        "# Benchmarks",
        "Written by `make bench`, which measures what is shipped beside its peers on one machine. "
        "Milliseconds hold for that machine; the ratios are what counts.",
        conditions(result),
        "## What is measured",
        subjects,
        "Every round runs each function once, in an order shuffled from the seed: spawn until "
        "the first call for work (start-up), the first invocation, and the warm ones one after "
        "another. Cold CPU is the processor time of the first two, CPU that of the whole life; "
        "memory is its peak. Medians over the rounds, 90th percentiles in parentheses; a "
        "ratio is the median of the rounds' own ratios. The binaries are those of the archives "
        "that are deployed; the archives of the Python functions hold what the Lambda runtime for "
        "Python does not bring.",
        "## Functions",
        functions(result),
        command,
        ratios(result),
        images,
        over_tls(tls),
        "## Schedules",
        f"One schedule of three periods in {result['evaluators']['zone']}, at "
        f"{result['evaluators']['count']:,} instants, at all of which both agree. AWS Instance "
        "Scheduler's evaluator is not published as a package; `tests/bench/peers/"
        "instance_scheduler.py` is a port of it in our words, without its log and its reading of "
        "expressions, which would make it slower.",
        evaluators(result),
        command,
        of_scale(scale, images_of_scale),
        "## Targets",
        targets(targets_of(result)),
        command,
        notes.strip(),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"
