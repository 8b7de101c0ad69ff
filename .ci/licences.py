"""Fails where an installed package has a licence that is not on the list. Run it by the environment's Python.

It reads what packages declare. What a wheel carries inside (FFmpeg in av, for example) it cannot see.
"""

import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path

LISTED = tomllib.loads(Path(__file__).with_name("licences.toml").read_text())
ALLOWED = {name.lower() for name in LISTED["allowed"]}
SPOKEN = {said.lower(): name for said, name in LISTED["spoken"].items()}


def main() -> int:
    """Print how many packages have which licence, and each that is not allowed."""
    counts: dict[str, int] = {}
    refused: list[str] = []
    packages = {
        one.name.lower().replace("_", "-"): one for one in importlib.metadata.distributions()
    }
    for name, package in sorted(packages.items()):
        declared = declare(package)
        if not is_allowed(declared):
            exception = LISTED["exceptions"].get(name, {})
            if exception.get("licence") != declared:
                refused.append(f"{name}: {declared!r}")
            declared = f"{declared} (listed)"
        counts[declared] = counts.get(declared, 0) + 1
    told = ", ".join(f"{n} {what}" for what, n in sorted(counts.items(), key=lambda c: -c[1]))
    print(f"licences of {len(packages)} packages: {told}")
    for line in refused:
        print(f"not on the list in .ci/licences.toml: {line}")
    return int(bool(refused))


def declare(package: importlib.metadata.Distribution) -> str:
    """The licence as an SPDX expression where it can be told, else the words of the package."""
    known = package.metadata
    if expression := known.get("License-Expression"):
        return expression
    said = (known.get("License") or "").strip().partition("\n")[0]
    if said.lower() in SPOKEN or is_allowed(said):
        return SPOKEN.get(said.lower(), said)
    marks = [
        one.rpartition(" :: ")[2]
        for one in known.get_all("Classifier") or []
        if one.startswith("License ::")
    ]
    told = [SPOKEN.get(mark.lower(), mark) for mark in marks if mark != "OSI Approved"]
    return " OR ".join(dict.fromkeys(told)) or said


def is_allowed(expression: str) -> bool:
    """Whether each part joined by AND offers a choice that is allowed."""
    parts = re.split(r"\s+AND\s+", expression.replace("(", "").replace(")", ""))
    return all(
        any(one.strip().lower() in ALLOWED for one in re.split(r"\s+OR\s+", part)) for part in parts
    )


if __name__ == "__main__":
    sys.exit(main())
