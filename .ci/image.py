"""Executes the lines of the Dockerfile in a Debian root, without a container engine; needs root.

    mmdebstrap --variant=minbase bookworm ROOT
    python .ci/image.py ROOT TARGET     # changes ROOT; copies the last commit

It executes FROM (by the stages before it), RUN, COPY, ENV, ARG and WORKDIR. At the end it runs ENTRYPOINT with
`--help` as the USER of the image. ROOT takes the place of the image that the first FROM names.
"""

import argparse
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass, field
from pathlib import Path

DOCKERFILE = Path(__file__).parents[1] / "Dockerfile"


@dataclass
class ImageStage:
    """Stage of a Dockerfile: its parent, and its lines as instruction and text."""

    name: str
    parent: str
    lines: list[tuple[str, str]] = field(default_factory=list)

    def last(self, instruction: str) -> str:
        """Return the text of the last line with this instruction; empty if there is none."""
        return next((text for word, text in reversed(self.lines) if word == instruction), "")


def read_stages(text: str) -> dict[str, ImageStage]:
    """Parse a Dockerfile without continued lines."""
    stages: dict[str, ImageStage] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        if word == "FROM":
            parent, name = re.fullmatch(r"(\S+) AS (\S+)", rest).groups()
            stages[name] = ImageStage(name, parent)
        else:
            stages[name].lines.append((word, rest))
    return stages


def list_lines(stages: dict[str, ImageStage], target: str) -> list[tuple[str, str]]:
    """Return the lines of `target`, those of its parents first."""
    if target not in stages:
        return []
    return [*list_lines(stages, stages[target].parent), *stages[target].lines]


def build(root: Path, target: str) -> None:
    """Execute the lines of `target` in `root`, and print the seconds of each."""
    stages = read_stages(DOCKERFILE.read_text(encoding="utf-8"))
    environment = {**os.environ, "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    lines = list_lines(stages, target)
    for word, text in lines:
        started = time.monotonic()
        if word in {"ENV", "ARG"}:
            name, _, value = text.partition("=")
            environment[name] = re.sub(r"\$(\w+)", lambda found: environment[found[1]], value)
        elif word == "COPY":
            copy_commit(root / text.split()[1].lstrip("/"))
        elif word == "RUN":
            subprocess.run(["chroot", root, "sh", "-c", text], env=environment, check=True)
        else:
            continue
        print(f"== {time.monotonic() - started:6.1f} s  {word} {text}", flush=True)
    user = next((text for word, text in reversed(lines) if word == "USER"), "root")
    command = [*json.loads(stages[target].last("ENTRYPOINT")), "--help"]
    command = ["chroot", f"--userspec={user}", str(root), *command]
    subprocess.run(command, env=environment | {"HOME": f"/home/{user}"}, check=True, stdout=subprocess.DEVNULL)
    print(f"== as {user}: {shlex.join(command[3:])}")


def copy_commit(folder: Path) -> None:
    """Copy the files of the last commit."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=DOCKERFILE.parent, check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("root", type=Path)
    parser.add_argument("target")
    options = parser.parse_args()
    if os.geteuid():
        sys.exit("chroot needs root. Run it with sudo")
    build(options.root, options.target)
