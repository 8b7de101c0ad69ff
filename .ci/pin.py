"""Writes constraints/: exact versions of all that is installed, with the hash of every file of each.

    python .ci/pin.py            keep the versions, add and drop what pyproject.toml asks for, renew hashes
    python .ci/pin.py --upgrade  take the newest versions that its bounds allow

Needs pip 25.1 and packaging. The index is the one that pip is set to use; it is written nowhere.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version
from pip._internal.models.index import PyPI  # pip's own default, so that no file of ours names it

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "constraints"
HEADS = {
    "base": "The base install.",
    "test": "What the light tests need without any extra, on top of base.txt.",
    "dev": "Development tools and every extra that tests use, on top of test.txt.",
    "image": "What Ray's dashboard needs, which only the container image has, on top of dev.txt.",
    "train": "Training, and a server for its tests, in an environment of its own: with --no-deps, since"
    " two packages are left out. torch is the one file of its CPU build, which no index has.",
    "studio": "Label Studio, a server that tests start, in an environment of its own.",
    "tools": "What builds and checks the packages, in an environment of its own.",
    "uv": "The installer of all other files.",
}
UNTESTED_EXTRAS = {"all", "local", "sts", "train", "transnet"}  # they bring torch
APART = {"fastapi", "numpy"}  # in train.txt: what serves the tests' models caps them
LEFT_OUT = {"torchaudio", "torchcodec"}  # it names them too; they need CUDA, and unreel decodes
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)

Pins = dict[str, Version]


def main() -> None:
    """Resolve the files one after the other, so that they agree, and write them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--upgrade", action="store_true")
    upgrade = parser.parse_args().upgrade
    kept = {} if upgrade else {name: read(FOLDER / f"{name}.txt") for name in HEADS}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    wanted = ",".join(sorted(extras.keys() - UNTESTED_EXTRAS))
    base = resolve(["."], kept.get("base", {}))
    test = resolve([".", "--group", "test"], kept.get("test", {}) | base)
    dev = resolve([f".[{wanted}]", "--group", "dev"], kept.get("dev", {}) | test)
    image = resolve(["ray[default]"], kept.get("image", {}) | dev)
    shared = {name: dev[name] for name in dev.keys() - APART}
    train = resolve([".[train]", "--group", "train"], kept.get("train", {}) | shared)
    studio = resolve(["--group", "studio"], kept.get("studio", {}))
    tools = resolve(["--group", "tools"], kept.get("tools", {}) | dev)
    write("base", base)
    write("test", {name: test[name] for name in test.keys() - base.keys()})
    write("dev", {name: dev[name] for name in dev.keys() - test.keys()})
    write("image", {name: image[name] for name in image.keys() - dev.keys()})
    write("train", {name: train[name] for name in train.keys() - LEFT_OUT})
    write("studio", studio)
    write("tools", tools)
    write("uv", resolve(["--group", "uv"], kept.get("uv", {})))


def read(path: Path) -> Pins:
    """The versions that `path` holds."""
    text = path.read_text() if path.exists() else ""
    return {canonicalize_name(name): Version(version) for name, version in PIN.findall(text)}


def resolve(wanted: list[str], kept: Pins) -> Pins:
    """Everything that an install of `wanted` brings, `kept` versions first."""
    with tempfile.TemporaryDirectory() as folder:
        limits, report = Path(folder, "limits.txt"), Path(folder, "report.json")
        limits.write_text("\n".join(f"{name}=={version}" for name, version in kept.items()))
        command = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed"]
        command += ["-c", str(limits), "--report", str(report), *wanted]
        subprocess.run(command, cwd=ROOT, check=True, stdout=sys.stderr)
        rows = json.loads(report.read_text())["install"]
    found = {row["metadata"]["name"]: Version(row["metadata"]["version"]) for row in rows}
    return {canonicalize_name(name): found[name] for name in found if name != "unreel"}


def write(name: str, pins: Pins) -> None:
    """Write the file `name` with the hashes of all files of each version, for every platform."""
    index = find_index()
    with ThreadPoolExecutor(8) as pool:
        hashes = dict(
            zip(
                pins,
                pool.map(lambda one: sorted(find_hashes(index, one, pins[one])), pins),
                strict=True,
            )
        )
    lines = [f"# {HEADS[name]} Written by .ci/pin.py; bounds live in pyproject.toml."]
    for one in sorted(pins):
        if not hashes[one]:
            sys.exit(f"the index has no hash for {one} {pins[one]}")
        given = " \\\n".join(f"    --hash=sha256:{digest}" for digest in hashes[one])
        lines.append(f"{one}=={pins[one]} \\\n{given}")
    (FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n")
    print(f"{name}.txt: {len(pins)} packages, {sum(map(len, hashes.values()))} files")


def find_index() -> str:
    """The address of the index that pip asks."""
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    told = subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip()
    return (told or PyPI.simple_url).rstrip("/")


def find_hashes(index: str, name: str, version: Version) -> Iterable[str]:
    """SHA-256 of each file of one version; of a local build, which no index has, that of the one file."""
    if version.local is None:
        return list_hashes(index, name, version)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder]
        subprocess.run([*command, f"{name}=={version}"], check=True, stdout=sys.stderr)
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in Path(folder).iterdir()]


def list_hashes(index: str, name: str, version: Version) -> Iterator[str]:
    """SHA-256 of each wheel and source archive of one version."""
    with urllib.request.urlopen(f"{index}/{name}/", timeout=60) as page:  # noqa: S310  pip's own address
        links = Links(page.read().decode())
    for file, digest in links.found:
        try:
            of_version = (parse_wheel_filename if file.endswith(".whl") else parse_sdist_filename)(
                file
            )[1]
        except ValueError:
            continue  # an egg, an installer, a name of the early days
        if of_version == version and digest.startswith("sha256="):
            yield digest.removeprefix("sha256=")


class Links(HTMLParser):
    """File names and hashes on a page of a package index."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Iterable[tuple[str, str | None]]) -> None:
        """Take the address and the fragment of a link."""
        address = dict(attrs).get("href") if tag == "a" else None
        if address:
            path, digest = urldefrag(address)
            self.found.append((unquote(urlsplit(path).path.rpartition("/")[2]), digest))


if __name__ == "__main__":
    main()
