"""Citation of a benchmark: BibTeX for the card, CFF for code hosts, and missing fields."""

import json
import re
from typing import Final

from unreel.core.names import plain_name
from unreel.curation.recipe import CitationSection

_UNSAID: Final = CitationSection()
_NOTHING: Final = "not stated"


def list_missing_citation_keys(citation: CitationSection | None) -> list[str]:
    """Return the keys of `[freeze.citation]` that a reader needs and the recipe does not set."""
    given = citation or _UNSAID
    if given.bibtex:
        return []
    wanted = {"authors": given.authors, "year": given.year, "url": given.url or given.doi}
    return [key for key, value in wanted.items() if not value]


def write_bibtex(name: str, version: str, citation: CitationSection | None) -> str:
    """Return the BibTeX entry of the recipe, or build one from its keys.

    Missing fields of a built entry say "not stated".
    """
    given = citation or _UNSAID
    if given.bibtex:
        return given.bibtex.strip()
    fields = {
        "title": f"{{{_escape_tex(name)}}}",
        "author": " and ".join(map(_format_bibtex_author, given.authors)) or _NOTHING,
        "year": str(given.year or _NOTHING),
        "version": _escape_tex(version),
        "doi": given.doi,
        "url": given.url or ("" if given.doi else _NOTHING),
    }
    lines = [f"  {key} = {{{value}}}," for key, value in fields.items() if value]
    return "\n".join([f"@misc{{{plain_name(name).lower()},", *lines, "}"])


def write_cff(name: str, version: str, citation: CitationSection | None) -> str | None:
    """Return a `CITATION.cff`; None without an author, which the format requires."""
    given = citation or _UNSAID
    if not given.authors:
        return None
    lines = [
        "cff-version: 1.2.0",
        "message: If you use this benchmark, please cite it as below.",
        "type: dataset",
        f"title: {_format_yaml_string(name)}",
        f"version: {_format_yaml_string(version)}",
        "authors:",
        *(line for author in given.authors for line in _format_cff_author(author)),
    ]
    lines += [
        f"{key}: {_format_yaml_string(value)}"
        for key in ("doi", "url")
        if (value := getattr(given, key))
    ]
    return "\n".join(lines) + "\n"


def _format_cff_author(author: str) -> list[str]:
    family, comma, first = (part.strip() for part in author.partition(","))
    if not comma:
        return [f"  - name: {_format_yaml_string(family)}"]
    return [
        f"  - family-names: {_format_yaml_string(family)}",
        f"    given-names: {_format_yaml_string(first)}",
    ]


def _format_bibtex_author(author: str) -> str:
    told = _escape_tex(author)
    return told if "," in told else f"{{{told}}}"  # BibTeX would turn a group's words round


def _escape_tex(text: str) -> str:
    plain = re.sub(r"[{}\\]", "", " ".join(text.split()))
    return re.sub(r"([%&#_$])", r"\\\1", plain)


def _format_yaml_string(text: str) -> str:
    """Return `text` as a quoted string that every YAML parser reads as the same text."""
    return json.dumps(text, ensure_ascii=False)
