"""The pictures of BENCHMARKS.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pygal
from pygal.style import CleanStyle

from .figures import SUBJECTS, Result, Samples, cold, median

PICTURES: dict[str, tuple[str, Callable[[Samples], float]]] = {
    "cold": ("Start-up and first invocation, ms", lambda samples: median(cold(samples))),
    "warm": ("Warm invocation, median, ms", lambda samples: median(samples["warm_p50_ms"])),
    "memory": ("Peak memory, MiB", lambda samples: median(samples["memory_mib"])),
}


def draw(result: Result, directory: Path) -> list[tuple[str, Path]]:
    """Writes the pictures; their titles and files."""
    directory.mkdir(parents=True, exist_ok=True)
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
        # The first is drawn at the bottom.
        subjects = list(reversed(SUBJECTS))
        chart.x_labels = subjects
        chart.add(title, [value(result["subjects"][name]["samples"]) for name in subjects])
        path = directory / f"{name}.svg"
        path.write_text(chart.render(is_unicode=True) + "\n")
        drawn.append((title, path))
    return drawn
