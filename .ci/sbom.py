"""Writes a bill of materials (CycloneDX) of the base install and of each extra. Run it by an environment that has them.

    python .ci/sbom.py CYCLONEDX_PY FOLDER

The packages are those that the metadata of the installed ones require; versions and hashes are from constraints/.
FOLDER/EXTRA.json is written for each extra. An extra whose packages are not all installed here is named.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(?m)^([a-z0-9.-]+)==\S+(?: \\\n    --hash=\S+)+\n")


def read_pins(files: list[str]) -> dict[str, str]:
    """Return the pinned requirement with its hashes of each package, by its name."""
    texts = [(ROOT / "constraints" / f"{name}.txt").read_text(encoding="utf-8") for name in files]
    return {found[1]: found[0] for text in texts for found in BLOCK.finditer(text)}


def iter_required(wanted: list[str]) -> Iterator[str]:
    """Yield the names of all packages that the requirements bring.

    Raises:
        PackageNotFoundError: One of them is not installed.
    """
    seen: set[tuple[str, str]] = set()
    waiting = [Requirement(text) for text in wanted]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            if name != "unreel" and not extra:
                yield name
            for text in requires(name) or ():
                each = Requirement(text)
                if each.marker is None or each.marker.evaluate({"extra": extra}):
                    waiting.append(each)


def main() -> int:
    """Write the files, and return the exit status."""
    program, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    pins = read_pins(["train"] if "train" in folder.name else ["base", "test", "dev"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    missing, written = [], []
    for extra in ["", *project["optional-dependencies"]]:
        try:
            names = sorted(set(iter_required([f"unreel[{extra}]" if extra else "unreel"])))
            text = "".join(pins[name] for name in names)
        except (PackageNotFoundError, KeyError) as error:
            missing.append(f"{extra} ({error.args[0]})")
            continue
        listed, out = folder / f"{extra or 'base'}.txt", folder / f"{extra or 'base'}.json"
        listed.write_text(text, encoding="utf-8")
        command = [program, "requirements", listed, "--pyproject", ROOT / "pyproject.toml"]
        subprocess.run(
            [*command, "--output-reproducible", "-o", out], check=True, stderr=subprocess.DEVNULL
        )
        written.append(f"{extra or 'base'} {len(names)}")
    print(f"bills of materials in {folder}: {', '.join(written)} packages")
    print(f"not installed here: {', '.join(missing) or 'none'}")
    return int(not written)


if __name__ == "__main__":
    sys.exit(main())
