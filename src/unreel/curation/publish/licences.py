"""Licence identifiers of a hub, and the file that lists all licences."""

import json
import re
from collections.abc import Mapping
from typing import Final

from unreel.core.names import plain_name
from unreel.core.sheet import markdown_table

LICENCES: Final = "LICENSE.md"
UNSTATED: Final = "not stated"
_CREATIVE: Final = ("by", "by-sa", "by-nc", "by-nc-sa", "by-nd", "by-nc-nd")
_KNOWN: Final = frozenset(
    {
        *(f"cc-{kind}-{version}" for kind in _CREATIVE for version in ("2.0", "2.5", "3.0", "4.0")),
        *("cc0-1.0", "mit", "apache-2.0", "odc-by", "odbl", "pddl", "unlicense", "gpl-3.0"),
        *("bsd-2-clause", "bsd-3-clause", "cdla-permissive-1.0", "cdla-permissive-2.0"),
        *("cdla-sharing-1.0", "c-uda", "etalab-2.0", "gfdl"),
    }
)
"""Identifiers that Hugging Face knows."""
_SAME: Final = {"cc0": "cc0-1.0", "cc-0": "cc0-1.0", "apache": "apache-2.0"}

_OWN: Final = (
    "Every clip keeps its own licence: the column `licence` of each manifest names it, and the column `source` "
    "tells where the clip is from."
)

Tally = Mapping[tuple[str, str], int]
"""Clips by licence and source."""


def hub_identifier(licence: str) -> str | None:
    """The licence as a hub calls it; None where it knows none of that name."""
    word = re.sub(r"[\s_]+", "-", licence.strip().lower())
    word = _SAME.get(word, word)
    return word if word in _KNOWN else None


def front_matter(tally: Tally) -> list[str]:
    """Return the licence lines of the card's header."""
    licences = sorted({licence for licence, _ in tally})
    known = [hub_identifier(licence) for licence in licences]
    if all(known):
        names = sorted({name for name in known if name})
        return (
            [f"license: {names[0]}"]
            if len(names) == 1
            else ["license:", *map("- {}".format, names)]
        )
    name = plain_name(licences[0]).lower() if len(licences) == 1 else "mixed"
    return [
        "license: other",
        f"license_name: {json.dumps(name, ensure_ascii=False)}",
        f"license_link: {LICENCES}",
    ]


def write_licences(name: str, tally: Tally) -> str:
    """The file of licences: how many clips are under which, and where they are from."""
    rows = [(licence, source, n) for (licence, source), n in sorted(tally.items())]
    table = markdown_table(("licence", "source", "clips"), rows)
    return f"# Licences of {' '.join(name.split())}\n\n{_OWN}\n\n{table}\n"
