"""Compares the Python API, the names that `unreel` exports, with the newest release.

    python .ci/api.py [--against REF]

Prints each breaking change and exits with status 1 if one is not accepted in .ci/api.toml. Needs griffe and git; without
a tag of a release it prints API NOT COMPARED.
"""

import argparse
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import griffe

ROOT = Path(__file__).parents[1]
_GIT = shutil.which("git") or "git"


def find_release() -> str | None:
    """Return the newest tag of a release that HEAD contains."""
    command = [_GIT, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]
    found = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    return found.stdout.strip() or None


def list_exports(package: griffe.Object | griffe.Alias) -> set[str]:
    """Return the paths of the exported objects where they are defined."""
    aliases = (member for member in package.members.values() if member.is_alias)
    return {alias.target_path for alias in aliases if alias.target_path.startswith("unreel.")}


def find_breaking_changes(reference: str) -> list[tuple[str, str]]:
    """Return the path and the description of each breaking change of an exported object."""
    old = griffe.load_git("unreel", ref=reference, repo=ROOT, search_paths=["src"])
    new = griffe.load("unreel", search_paths=[ROOT / "src"])
    exported = list_exports(old)
    lost = {alias.name for alias in old.members.values() if alias.is_alias} - set(new.members)
    changes = [(f"unreel.{name}", "is not exported any more") for name in sorted(lost)]
    for change in griffe.find_breaking_changes(old, new):
        path = change.obj.canonical_path
        if any(path == each or path.startswith(f"{each}.") for each in exported):
            changes.append((path, change.kind.value))
    return changes


def main() -> int:
    """Print the changes and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--against", metavar="REF", help="Commit or tag; default: newest release.")
    reference = parser.parse_args().against or find_release()
    if reference is None:
        print("API NOT COMPARED: no tag of a release exists")
        return 0
    accepted = tomllib.loads(Path(__file__).with_name("api.toml").read_text())["accepted"]
    changes = find_breaking_changes(reference)
    refused = [change for change in changes if change[0] not in accepted]
    print(f"API against {reference}: {len(changes)} breaking changes, {len(refused)} not accepted")
    for path, text in refused:
        print(f"  {path}: {text}")
    return int(bool(refused))


if __name__ == "__main__":
    sys.exit(main())
