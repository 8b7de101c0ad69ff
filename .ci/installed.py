"""Tells whether the Python that runs it is fit for development: every pin of constraints/, and this checkout's unreel.

Where it is, prints the folder of its programs. Else says on standard error what is amiss and exits with 1.
"""

import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = ("base.txt", "test.txt", "dev.txt")
TOLD = 5


def main() -> int:
    """Compare what is installed with what is pinned."""
    amiss = list(compare(read_pins(), read_installed()))
    unreel = find_spec("unreel")
    if unreel is None or Path(unreel.origin or "") != ROOT / "src" / "unreel" / "__init__.py":
        amiss.append("unreel is not that of this checkout")
    if not amiss:
        print(sysconfig.get_path("scripts"))
        return 0
    more = [f"and {len(amiss) - TOLD} more"] * (len(amiss) > TOLD)
    print(f"{sys.executable}: {', '.join(amiss[:TOLD] + more)}", file=sys.stderr)
    return 1


def read_pins() -> dict[str, str]:
    """The version of each package that development needs."""
    texts = [(ROOT / "constraints" / name).read_text() for name in FILES]
    return dict(re.findall(r"(?m)^([a-z0-9.-]+)==(\S+)", "".join(texts)))


def read_installed() -> dict[str, str]:
    """The version of each package that is here; of two, the one that an import finds first."""
    found = reversed(list(distributions()))
    return {re.sub(r"[-_.]+", "-", one.name).lower(): one.version for one in found}


def compare(pins: Mapping[str, str], installed: Mapping[str, str]) -> Iterator[str]:
    """Each pin that is not installed as it says."""
    for name, version in pins.items():
        if name not in installed:
            yield f"{name} is missing"
        elif installed[name] != version:
            yield f"{name} is {installed[name]}, not {version}"


if __name__ == "__main__":
    sys.exit(main())
