"""Says how large the base install is; fails above 400 MB, and where the README says otherwise.

Run it in an environment without extras.
"""

import importlib.metadata
import re
import sys
from importlib.util import cache_from_source
from pathlib import Path

LIMIT_MB = 400
NEAR = 0.02
"""How far a release of somebody else's package may move the figure before the README must follow."""
# What a bare virtual environment brings by itself.
GIVEN = {"pip", "setuptools"}
README = Path(__file__).parents[1] / "README.md"


def size_of(distribution: importlib.metadata.Distribution) -> int:
    """Return the bytes of the files of one package, compiled modules included, which pip lists and uv does not."""
    listed = {Path(distribution.locate_file(file)) for file in distribution.files or ()}
    compiled = {Path(cache_from_source(path)) for path in listed if path.suffix == ".py"}
    return sum(path.stat().st_size for path in listed | compiled if path.is_file())


def said_mb(readme: str) -> int:
    """The megabytes that the README names beside `pip install unreel`."""
    return int(re.search(r"`pip install unreel` \|.*; (\d+) MB", readme)[1])


def is_as_said(total_mb: float, readme: str) -> bool:
    """Whether the README's figure is true."""
    return abs(total_mb / said_mb(readme) - 1) <= NEAR


def main() -> int:
    """Print the size of every installed package's files, largest first."""
    sizes = {
        distribution.name: size_of(distribution)
        for distribution in importlib.metadata.distributions()
        if distribution.name not in GIVEN
    }
    total_mb = sum(sizes.values()) / 1e6
    largest = ", ".join(
        f"{name} {size / 1e6:.0f}" for name, size in sorted(sizes.items(), key=lambda s: -s[1])[:5]
    )
    print(f"base install: {total_mb:.0f} MB in {len(sizes)} packages ({largest})")
    readme = README.read_text(encoding="utf-8")
    is_true = is_as_said(total_mb, readme)
    if not is_true:
        print(f"README.md says {said_mb(readme)} MB: write {total_mb:.0f}")
    return int(total_mb >= LIMIT_MB or not is_true)


if __name__ == "__main__":
    sys.exit(main())
