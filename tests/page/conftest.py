"""Pages of the example fleet and of a large one, and a browser that shows them."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet import CONFIGURATION, fleet

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
AXE = Path(__file__).with_name("node_modules") / "axe-core" / "axe.min.js"
CHROMIUM = shutil.which("chromium")

# A Monday before dawn.
FROM = "2026-11-23T05:00:00Z"


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


class Place:
    """A folder with the documents that are made of one fleet, beside its simulated clouds."""

    def __init__(self, folder: Path, fleet: Path, configuration: Path):
        self.folder = folder
        self.configuration = configuration
        command = [PROGRAMS / "cloud-simulator", "--fleet", fleet, "--at", FROM]
        command += ["--listen", "127.0.0.1:0"]
        self.clouds = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "OFFHOURS_DATA": str(folder / "offhours.db"),
            "OFFHOURS_DEMO_DO_TOKEN": "simulated-do-token",
            "OFFHOURS_DEMO_HZ_TOKEN": "simulated-hz-token",
            "OFFHOURS_SIMULATE": self.clouds.stdout.readline().split()[-1],
        }

    def run(self, *arguments: str | Path) -> None:
        subprocess.run(
            [PROGRAMS / "offhours", *arguments],
            cwd=self.folder,
            env=self.environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def live(self, span: str) -> None:
        """Lets simulated time pass."""
        files = ["--config", self.configuration]
        self.run("local", "--speed", "0", "--from", FROM, "--for", span, *files)

    def close(self) -> None:
        self.clouds.terminate()
        self.clouds.wait()


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
