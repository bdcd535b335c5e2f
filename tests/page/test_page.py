"""The page as a browser shows it."""

from html.parser import HTMLParser
from pathlib import Path
from statistics import median

import pytest

SIZES = [360, 768, 1280]
SCHEMES = ["light", "dark"]

OVERFLOWING = """() => [...document.querySelectorAll("body *")]
  .filter(e => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1)
  .filter(e => {
    for (let p = e.parentElement; p; p = p.parentElement)
      if (["auto", "scroll", "hidden"].includes(getComputedStyle(p).overflowX)) return false;
    return true;
  })
  .map(e => e.outerHTML.slice(0, 120))"""

UNFOLD = "() => document.querySelectorAll('details').forEach(one => one.open = true)"

FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"

# Where the keyboard is, as a number that the element keeps.
FOCUS = """() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  one.dataset.reached = "yes";
  return one.outerHTML.slice(0, 80);
}"""

UNREACHED = """() => [...document.querySelectorAll("svg[role=img]")]
  .filter(e => e.checkVisibility() && !e.closest("[data-reached]"))
  .map(e => e.getAttribute("aria-label") ?? e.textContent.slice(0, 80))"""

UNNAMED = """() => [...document.querySelectorAll("svg")]
  .filter(e => e.getAttribute("aria-hidden") !== "true")
  .filter(e => e.getAttribute("role") !== "img" || !e.querySelector("title")?.textContent)
  .map(e => e.outerHTML.slice(0, 120))"""


@pytest.fixture(params=["example", "public", "large"])
def document(request: pytest.FixtureRequest) -> Path:
    if request.param == "public":
        return request.getfixturevalue("example") / "public.html"
    return request.getfixturevalue(request.param) / "page.html"


@pytest.fixture
def show(browser, request):
    """Opens a document; fails if it asks for anything or has anything to report."""
    complaints = []
    contexts = []

    def open_page(document: Path, width: int = 1280, scheme: str = "light"):
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, offline=False
        )
        contexts.append(context)
        page = context.new_page()
        address = document.as_uri()
        page.on("request", lambda asked: asked.url == address or complaints.append(asked.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.mark.parametrize("width", SIZES)
def test_nothing_overflows(document, show, width):
    page = show(document, width)
    assert page.evaluate(OVERFLOWING) == []
    page.evaluate(UNFOLD)
    assert page.evaluate(OVERFLOWING) == []
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width


def test_nothing_overflows_on_paper(document, show):
    # The width of A4 at 96 dots per inch, less the margins.
    page = show(document, 718)
    page.emulate_media(media="print")
    assert page.evaluate(OVERFLOWING) == []


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_nothing(document, show, axe, width, scheme):
    page = show(document, width, scheme)
    page.evaluate(UNFOLD)
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert [
        (one["id"], node["target"], node["failureSummary"])
        for one in found["violations"]
        for node in one["nodes"][:3]
    ] == []


def test_every_picture_has_a_name_and_can_be_reached_by_keyboard(document, show):
    page = show(document)
    assert page.evaluate(UNNAMED) == []
    before = None
    for _ in range(3000):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUS)
        if focused is None and before is not None:
            break
        before = focused
    assert page.evaluate(UNREACHED) == []


class Elements(HTMLParser):
    """The elements of a document, and the names of their attributes."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)


def test_it_needs_no_script_and_loads_nothing(document):
    text = document.read_text()
    elements = Elements(text)
    assert not elements.tags & {"script", "link", "iframe", "object", "img", "form", "base"}
    assert not elements.attributes & {"src", "href", "action", "onclick", "onload", "onerror"}
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style and "@import" not in style
    assert "default-src 'none'" in text


def test_the_page_of_500_resources_is_small_and_its_first_paint_is_measured(large, show):
    document = large / "page.html"
    size = document.stat().st_size
    assert size < 600_000
    paints = []
    for _ in range(5):
        page = show(document)
        # An entry comes with the first frame, which may be after the event `load`.
        page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
        paints.append(page.evaluate(FIRST_PAINT))
    # `make paint` shows it.
    print(f"\n500 resources: {size:,} bytes, first painted after {median(paints):.0f} ms")


def test_names_are_shown_as_text(large, show):
    page = show(large / "page.html")
    page.evaluate(UNFOLD)
    text = page.inner_text("body")
    for name in ["<script>alert(1)</script>", "'><img src=x onerror=alert(1)>", "&lt;b&gt;"]:
        assert name in text, name
    assert "\u202e" not in text


def test_the_public_form_names_nobody(example):
    text = (example / "public.html").read_text()
    for secret in ["do-main", "hz-eu", "387104512", "/droplet/", "/server/"]:
        assert secret in (example / "page.html").read_text(), secret
        assert secret not in text, secret
