"""The pictures in README.md. With `OFFHOURS_UPDATE_README` set, they are written."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import readme_pictures
from place import PROGRAMS, ROOT, Place

PICTURES = ROOT / "docs" / "pictures"
UPDATES = "OFFHOURS_UPDATE_README" in os.environ


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pictures of the example fleet's Monday, and of the bill that `make run` shows."""
    folder = tmp_path_factory.mktemp("monday")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    command = [PROGRAMS / "offhours", "local", "--simulate", "--speed", "0", "-o", "json"]
    demonstration = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    examples = ROOT / "examples"
    place = Place(folder, examples / "fleet.toml", examples / "offhours.toml")
    try:
        place.live("25h")
        place.run("report", "--tz", "Europe/Berlin", "page.html")
    finally:
        place.close()
        events, _ = demonstration.communicate()
    assert demonstration.returncode == 0
    page = (folder / "page.html").read_text()
    charges = json.loads(events.splitlines()[-1])["bill"]
    return {"day.svg": readme_pictures.day(page), "bill.svg": readme_pictures.bill(page, charges)}


@pytest.mark.parametrize("name", ["day.svg", "bill.svg"])
def test_a_picture_in_the_readme_is_what_happens(drawn: dict[str, str], name: str):
    if UPDATES:
        (PICTURES / name).write_text(drawn[name])
    assert (PICTURES / name).read_text() == drawn[name], "`make readme` draws it anew"


def test_the_readme_has_the_amounts_of_the_bill():
    readme = (ROOT / "README.md").read_text()
    amounts = re.findall(r">(\d+\.\d\d) [A-Z]{3}<", (PICTURES / "bill.svg").read_text())
    assert len(amounts) == 4 and all(amount in readme for amount in amounts), amounts


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_has_the_colors_of_its_reader(browser, scheme: str):
    page = browser.new_page(color_scheme=scheme)
    page.goto((PICTURES / "day.svg").as_uri())
    paper = page.evaluate("getComputedStyle(document.querySelector('.paper')).fill")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(15, 20, 25)"}[scheme]
    page.close()


def test_the_screenshot_is_small_and_says_what_the_page_does(browser, example: Path):
    screenshot = PICTURES / "page.png"
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    page.goto((example / "page.html").as_uri())
    if UPDATES:
        end = page.locator("section").first.bounding_box()
        clip = {"x": 0, "y": 0, "width": 1000, "height": end["y"] + end["height"] + 20}
        page.screenshot(path=screenshot, full_page=True, clip=clip)
    assert screenshot.stat().st_size < 150_000
    head = page.inner_text("header")
    assert "2 resources need attention." in head and "13 of 23 off" in head, (
        "the words in README.md"
    )
    page.close()
