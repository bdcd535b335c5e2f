"""Pages of the example fleet and of a large one, and a browser that shows them."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet import CONFIGURATION, fleet
from place import PROGRAMS, ROOT, Place

AXE = Path(__file__).with_name("node_modules") / "axe-core" / "axe.min.js"
CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:  # noqa: F821
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # The sandbox of Chromium refuses to run as root.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe() -> str:
    if not AXE.exists():
        pytest.skip("axe-core is not installed (npm ci, in tests/page)")
    return AXE.read_text()


@pytest.fixture(scope="session")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The example fleet on a Thursday evening, when most of it is off."""
    examples = ROOT / "examples"
    folder = tmp_path_factory.mktemp("example")
    place = Place(folder, examples / "fleet.toml", examples / "offhours.toml")
    place.live("90h")
    yield place
    place.close()


@pytest.fixture(scope="session")
def example(evening: Place) -> Path:
    """Documents of that evening."""
    evening.run("report", "-o", "page.html")
    evening.run("report", "--public", "-o", "public.html")
    return evening.folder


@pytest.fixture
def ui(evening: Place) -> Iterator[str]:
    """The address that `offhours ui` prints."""
    command = [PROGRAMS / "offhours", "ui"]
    folder, environment = evening.folder, evening.environment
    program = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    yield program.stdout.readline().strip()
    program.terminate()
    program.wait()


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """500 resources, with names that are hard to show."""
    folder = tmp_path_factory.mktemp("large")
    (folder / "fleet.toml").write_text(fleet(500))
    (folder / "offhours.toml").write_text(CONFIGURATION)
    place = Place(folder, folder / "fleet.toml", folder / "offhours.toml")
    place.live("15h")
    place.run("report", "-o", "page.html")
    yield folder
    place.close()
