"""Pictures for the README as SVG: the page's strips of a day, and the bill of that day as bars."""

import re
from html import escape
from typing import NamedTuple

# The example's day: from Monday 07:00 to Tuesday 07:00 in Berlin.
BEGIN = 7 * 60
DAY = 24 * 60

# The height of a day in a week of the page.
ROW = 44

WIDTH = 860
LEFT = 170
RIGHT = WIDTH - 30
LINE = 62
NAMES = {"do-main": "DigitalOcean", "hz-eu": "Hetzner Cloud"}


class Block(NamedTuple):
    """A rectangle of a strip: what it is, when, and where."""

    kind: str
    begin: int
    end: int
    top: int
    height: int


class Schedule(NamedTuple):
    name: str
    resources: int
    blocks: list[Block]


def schedules(page: str) -> list[Schedule]:
    """Returns the schedules of a page, each with its strip of the example's day."""
    found = []
    for article in page.split('<article class="schedule">')[1:]:
        name = re.search(r"<h3>([^<]+)</h3>", article)[1]
        resources = int(re.search(r"(\d+) resources? off\.", article)[1])
        week = re.search(r'<svg [^>]*aria-label="This week of .*?</svg>', article)[0]
        blocks = []
        for kind, path in re.findall(r'<path class="(\w)" d="([^"]+)">', week):
            for block in re.findall(r"M(\d+) (\d+)h(\d+)v(\d+)", path):
                begin, top, width, height = map(int, block)
                day, top = divmod(top, ROW)
                begin += day * DAY - BEGIN
                end = min(begin + width, DAY)
                if end > 0 and begin < DAY:
                    blocks.append(Block(kind, max(begin, 0), end, top, height))
        found.append(Schedule(name, resources, blocks))
    return found


def day(page: str) -> str:
    """Draws the example's day."""
    rows, lines, words = schedules(page), [], []
    bottom = 76 + LINE * len(rows)
    for hour in range(BEGIN // 60, BEGIN // 60 + 25, 3):
        x = across(hour * 60 - BEGIN)
        lines.append(f'<path class="line" d="M{x} 62V{bottom}"/>')
        lines.append(text(x, bottom + 16, f"{hour % 24:02}:00", "small", "middle"))
    for number, row in enumerate(rows):
        top = 70 + LINE * number
        lines.append(text(LEFT - 12, top + 18, row.name, "name", "end"))
        count = f"{row.resources} resources"
        lines.append(text(LEFT - 12, top + 36, count, "small", "end"))
        for one in row.blocks:
            left, right = across(one.begin), across(one.end)
            lines.append(
                f'<rect class="{one.kind}" x="{left}" y="{top + one.top}"'
                f' width="{round(right - left, 1)}" height="{one.height}"/>'
            )
        running = [one for one in row.blocks if one.kind == "r"]
        times = [f"{clock(one.begin)} to {clock(one.end)}" for one in running]
        words.append(f"{row.name}, {count}: should run {' and '.join(times)}.")
    signs = [("r", "should run"), ("s", "should be off"), ("d", "did run"), ("k", "did not run")]
    for number, (kind, meaning) in enumerate(signs):
        x, height = LEFT + 140 * number, 4 if kind == "s" else 12
        lines.append(
            f'<rect class="{kind}" x="{x}" y="{52 - height}" width="14" height="{height}"/>'
        )
        lines.append(text(x + 20, 52, meaning, "small"))
    title = "A Monday of the example fleet, in Berlin's time"
    words = ["What each schedule wants running, and below it how much of that ran.", *words]
    return drawing(page, title, " ".join(words), lines, bottom + 30)


def bill(page: str, charges: dict[str, dict[str, str]]) -> str:
    """Draws what accounts are charged for the example's day, and what they would have been."""
    lines, words = [], []
    for number, (account, charge) in enumerate(charges.items()):
        name, currency = NAMES[account], charge["currency"]
        full, charged = float(charge["left_running"]), float(charge["charged"])
        less = f"{100 * (1 - charged / full):.0f} % less"
        top = 44 + 76 * number
        lines.append(text(LEFT - 12, top + 30, name, "name", "end"))
        for place, (kind, amount, words_of_it) in enumerate(
            [("k", full, "everything left running"), ("r", charged, f"with Offhours: {less}")]
        ):
            y = top + 30 * place
            length = round((WIDTH - 300 - LEFT) * amount / full, 1)
            lines.append(f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{length}" height="24"/>')
            amount = f"{amount:.2f} {currency}"
            lines.append(text(LEFT + 10, y + 17, amount, "on-bar" if kind == "r" else "amount"))
            lines.append(text(WIDTH - 290, y + 17, words_of_it, "words"))
        words.append(f"{name}: {charged:.2f} {currency} instead of {full:.2f} {currency}, {less}.")
    height = 44 + 76 * len(charges)
    return drawing(page, "The bill of that day", " ".join(words), lines, height)


def across(minute: int) -> float:
    return round(LEFT + (RIGHT - LEFT) * minute / DAY, 1)


def clock(minute: int) -> str:
    return f"{(minute + BEGIN) // 60 % 24:02}:{minute % 60:02}"


def text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'


def drawing(page: str, title: str, description: str, lines: list[str], height: int) -> str:
    """Returns a document with the colors of the page, light or dark as its reader has it."""
    light, dark = re.findall(r":root\{([^}]+)\}", page)
    fills = "".join(re.findall(r"\.[ksrd]\{fill:[^}]+\}", page))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
            ' aria-labelledby="title description">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="description">{escape(description)}</desc>',
            "<style>",
            f":root{{{light}}}",
            f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}",
            fills,
            "text{font:14px system-ui,sans-serif;fill:var(--fg)}.head,.name{font-weight:600}",
            ".small{font-size:13px;fill:var(--muted)}.amount,.on-bar{font-weight:600}.on-bar{fill:var(--bg)}",
            "rect{shape-rendering:crispEdges}.line{stroke:var(--line)}.paper{fill:var(--bg)}",
            "</style>",
            f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
            text(16, 26, title, "head"),
            *lines,
            "</svg>\n",
        ]
    )
