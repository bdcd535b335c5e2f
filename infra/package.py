"""Packages what was built for deploying it with the AWS CLI alone, without this checkout.

Into the folder that is named go an archive of each function, for the processor that it was built
for, and the template, which reads the archives from a bucket of the user's.
"""

from __future__ import annotations

import sys
import tomllib
import zipfile
from pathlib import Path

from deploy import BUILT, FUNCTIONS, ROOT, TEMPLATE, DeployError, built_for

BUCKET = """\
  ArtifactsBucket:
    Type: String
    AllowedPattern: "^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"
    Description: The bucket, in this region, to which you uploaded the functions' archives.
    ConstraintDescription: must be the name of a bucket.
"""


def version() -> str:
    """Returns the version of the release."""
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())
    return cargo["workspace"]["package"]["version"]


def packaged(template: str, release: str) -> str:
    """Returns a template that reads each function's archive from a bucket.

    The version is part of each key: CloudFormation deploys new code only if the key is another one.
    """
    for name in FUNCTIONS:
        key = f'!Sub "offhours-{release}/{name}-${{Architecture}}.zip"'
        code = f"CodeUri: {{ Bucket: !Ref ArtifactsBucket, Key: {key} }}"
        template = replaced(template, f"CodeUri: ../target/lambda/{name}/", code)
    template = replaced(
        template, "Parameters: [Architecture,", "Parameters: [ArtifactsBucket, Architecture,"
    )
    label = "      Architecture: { default: Processor of the functions }\n"
    template = replaced(
        template, label, "      ArtifactsBucket: { default: Bucket with the functions }\n" + label
    )
    return replaced(template, "\nParameters:\n", "\nParameters:\n" + BUCKET)


def replaced(text: str, old: str, new: str) -> str:
    """Replaces a text that must be there exactly once."""
    if text.count(old) != 1:
        raise DeployError(f"{TEMPLATE.name} has {old.strip()!r} {text.count(old)} times")
    return text.replace(old, new)


def archive(program: Path, path: Path) -> None:
    """Writes a function's archive: the same bytes for the same program."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        entry = zipfile.ZipInfo("bootstrap")
        entry.external_attr = 0o100755 << 16
        file.writestr(entry, program.read_bytes(), zipfile.ZIP_DEFLATED, 9)


def main(folder: Path) -> None:
    functions = folder / "functions"
    functions.mkdir(parents=True, exist_ok=True)
    processor = built_for(BUILT)
    for name in FUNCTIONS:
        archive(BUILT / name / "bootstrap", functions / f"{name}-{processor}.zip")
    (folder / "template.yaml").write_text(packaged(TEMPLATE.read_text(), version()))


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except DeployError as error:
        sys.exit(f"error: {error}")
