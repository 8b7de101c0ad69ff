"""Executes the lines of the Dockerfile in a Debian root, without a container engine; needs root.

    mmdebstrap --variant=minbase bookworm ROOT
    python .ci/image.py ROOT TARGET...    # the image of a stage is ROOT-STAGE; COPY copies the last commit

It executes FROM, RUN, COPY, ENV and ARG. At the end it runs the ENTRYPOINT of each target with `--help` as the USER of
the image. ROOT takes the place of the image that the first FROM names; it needs a resolv.conf.
"""

import argparse
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass, field
from pathlib import Path

DOCKERFILE = Path(__file__).parents[1] / "Dockerfile"
_CHROOT, _CP, _GIT = (shutil.which(name) or name for name in ("chroot", "cp", "git"))
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


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
        if word == "ARG" and not stages:
            continue  # a variable of FROM
        if word == "FROM":
            parent, name = re.fullmatch(r"(\S+) AS (\S+)", rest).groups()
            stages[name] = ImageStage(name, parent)
        else:
            stages[name].lines.append((word, rest))
    return stages


class ImageBuilder:
    """Builder of stages: each in a copy of the root of its parent."""

    def __init__(self, root: Path) -> None:
        self._stages = read_stages(DOCKERFILE.read_text(encoding="utf-8"))
        # ROOT takes the place of an image, whose digest the first lines require.
        outer = os.environ | {"PATH": _PATH, "BASE": f"{root}@sha256:"}  # noqa: TID251  handed on to pip
        self._built = {"": (root, outer)}

    def build(self, name: str) -> tuple[Path, dict[str, str]]:
        """Execute the lines of a stage and its parents once; return its root and its variables."""
        if name in self._built or name not in self._stages:
            return self._built.get(name, self._built[""])
        stage = self._stages[name]
        parent, variables = self.build(stage.parent)
        root = self._built[""][0].with_name(f"{self._built[''][0].name}-{name}")
        subprocess.run([_CP, "-a", "--one-file-system", parent, root], check=True)
        environment = dict(variables)
        for word, text in stage.lines:
            started = time.monotonic()
            execute_line(root, word, text, environment)
            print(f"{name} {time.monotonic() - started:6.1f} s  {word} {text}", flush=True)
        self._built[name] = (root, environment)
        return self._built[name]

    def print_help(self, name: str) -> None:
        """Run the entry point of a stage with `--help`, as its user."""
        root, environment = self.build(name)
        user = self._stages[name].last("USER") or "root"
        words = [*json.loads(self._stages[name].last("ENTRYPOINT")), "--help"]
        command = [_CHROOT, f"--userspec={user}", str(root), *words]
        environment = environment | {"HOME": f"/home/{user}"}
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        print(f"{name} works as {user}: {shlex.join(words)}", flush=True)


def execute_line(root: Path, word: str, text: str, environment: dict[str, str]) -> None:
    """Execute one line in `root`; ENV and ARG change `environment`."""
    if word in {"ENV", "ARG"} and "=" in text:
        name, _, value = text.partition("=")
        value = value.strip('"')
        environment[name] = re.sub(r"\$(\w+)", lambda found: environment[found[1]], value)
    elif word == "COPY":
        copy_commit(root / text.split()[1].lstrip("/"))
    elif word == "RUN":
        subprocess.run([_CHROOT, root, "sh", "-c", text], env=environment, check=True)


def copy_commit(folder: Path) -> None:
    """Copy the files of the last commit."""
    archive = subprocess.run(
        [_GIT, "archive", "HEAD"], cwd=DOCKERFILE.parent, check=True, capture_output=True
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("root", type=Path)
    parser.add_argument("targets", nargs="+", metavar="TARGET")
    options = parser.parse_args()
    if os.geteuid():
        sys.exit("chroot needs root. Run it with sudo")
    builder = ImageBuilder(options.root.absolute())
    for target in options.targets:
        builder.print_help(target)
