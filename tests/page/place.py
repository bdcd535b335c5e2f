"""A fleet in simulated clouds, and what the command shows of it."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"

# A Monday before dawn.
FROM = "2026-11-23T05:00:00Z"


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
