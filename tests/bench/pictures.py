"""The pictures of BENCHMARKS.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pygal
from pygal.style import CleanStyle

from .figures import SUBJECTS, Result, Samples, cold, median
from .scaled import besides_ticks, cpu, filled, peak_mib

PICTURES: dict[str, tuple[str, Callable[[Samples], float]]] = {
    "cold": ("Start-up and first invocation, ms", lambda samples: median(cold(samples))),
    "warm": ("Warm invocation, median, ms", lambda samples: median(samples["warm_p50_ms"])),
    "memory": ("Peak memory, MiB", lambda samples: median(samples["memory_mib"])),
}


def of_functions(result: Result, directory: Path) -> list[tuple[str, Path]]:
    """Writes a picture for each measure. Returns their titles and files."""
    drawn = []
    for name, (title, value) in PICTURES.items():
        chart = pygal.HorizontalBar(
            title=title,
            show_legend=False,
            print_values=True,
            style=CleanStyle(font_family="sans-serif"),
            width=800,
            height=360,
            # No script, and no attributes that change from run to run.
            js=[],
            no_prefix=True,
        )
        chart.value_formatter = lambda number: f"{number:.3g}"
        # The first bar is drawn at the bottom.
        subjects = list(reversed(SUBJECTS))
        chart.x_labels = subjects
        chart.add(title, [value(result["subjects"][name]["samples"]) for name in subjects])
        path = directory / f"{name}.svg"
        path.write_text(chart.render(is_unicode=True) + "\n")
        drawn.append((title, path))
    return drawn


GROWTH: dict[str, tuple[str, str, Callable[[Result], float]]] = {
    "inventory": (
        "Processor time of an inventory, ms",
        "inventory",
        lambda size: besides_ticks(size, "inventory", cpu),
    ),
    "edge": (
        "Processor time of a stop of everything, ms",
        "stop",
        lambda size: besides_ticks(size, "stop", cpu),
    ),
    "peak": (
        "Peak memory of the service in one process, MiB",
        "memory",
        peak_mib,
    ),
}
"""Values that grow with the fleet, drawn with logarithmic axes: title, label, and the value."""


def of_scale(result: Result, directory: Path) -> list[tuple[str, Path]]:
    """Writes a picture of each growth beside a proportional line. Returns titles and files."""
    sizes = filled(result)
    drawn = []
    for name, (title, label, value) in GROWTH.items():
        chart = pygal.XY(
            title=title,
            x_title="resources",
            logarithmic=True,
            xrange=(sizes[0]["resources"], sizes[-1]["resources"]),
            style=CleanStyle(font_family="sans-serif"),
            width=800,
            height=360,
            js=[],
            no_prefix=True,
        )
        chart.x_value_formatter = chart.value_formatter = lambda number: f"{number:,.0f}"
        points = [(size["resources"], value(size)) for size in sizes]
        (most, last) = points[-1]
        chart.x_labels = [count for count, _ in points]
        # The library's own labels overlap.
        steps = (step * 10**digits for digits in range(1, 6) for step in (1, 2, 5))
        lowest = last * points[0][0] / most
        chart.y_labels = [step for step in steps if lowest / 2 <= step <= 2 * last]
        chart.add(label, points)
        in_proportion = [(count, last * count / most) for count, _ in points]
        chart.add("in proportion", in_proportion, stroke_style={"dasharray": "4, 4"})
        path = directory / f"scale-{name}.svg"
        path.write_text(chart.render(is_unicode=True) + "\n")
        drawn.append((title, path))
    return drawn
