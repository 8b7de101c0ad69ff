"""The data card of a frozen benchmark: what is in it, from whom, under which licence, and what leaks."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Any, Final

from unreel.core.sheet import markdown_table
from unreel.core.span import MICROSECONDS
from unreel.curate.freeze.citation import missing_parts, write_bibtex
from unreel.curate.freeze.section import CitationSection
from unreel.curate.piece import LeftOut

Rows = Sequence[Mapping[str, Any]]
_NONE: Final = "—"
_LENGTHS_S: Final = (2, 4, 6, 8, 10, 20)
_SHOWN_SIZES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Everything that the card tells."""

    name: str
    version: str
    about: str
    citation: CitationSection | None
    rows: Rows
    """Rows of the manifest."""
    left_out: Sequence[LeftOut]
    audit: str
    """The audit's result, as text to be read; what to do where there was none."""
    recipe: str


def write_card(card: Card) -> str:
    """The card as Markdown with the header that dataset hubs read. No date, no path, no machine."""
    rows = card.rows
    sizes = Counter(_size(row) for row in rows)
    licences = Counter(row["licence"] or "not stated" for row in rows)
    parts = [
        _header(card),
        f"# {card.name} {card.version}",
        card.about or "A benchmark of real and generated video.",
        f"{len(rows)} clips from {len({row['source_video'] for row in rows})} source videos.",
        "## Splits",
        _splits(rows),
        "Pieces and near-duplicates of one source video, and clips of one scene, share a split.",
        "## Sources",
        _sources(rows),
        "## Resolutions",
        markdown_table(("resolution", "clips"), _by_count(sizes)),
        "## Lengths",
        _lengths(rows),
        "## Categories of traces",
        _categories(rows),
        "## Licences",
        markdown_table(("licence", "clips"), _by_count(licences)),
        "Each clip names its licence and its source in the manifest.",
        "## Citation",
        _citation(card),
        "## Can the label be told without looking?",
        card.audit,
        "## Left out",
        _left_out(card.left_out),
        "## Recipe",
        f"```json\n{card.recipe}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _header(card: Card) -> str:
    tags = ["video", "ai-generated", "unreel"]
    lines = [
        f"pretty_name: {json.dumps(card.name, ensure_ascii=False)}",
        "license: other",
        "task_categories: [video-classification]",
        f"tags: [{', '.join(tags)}]",
    ]
    return "\n".join(["---", *lines, "---"])


def _citation(card: Card) -> str:
    entry = write_bibtex(card.name, card.version, card.citation)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", entry)), default=0))
    shown = f"{fence}bibtex\n{entry}\n{fence}"
    missing = missing_parts(card.citation)
    if not missing:
        return shown
    keys = ", ".join(f"`{key}`" for key in missing)
    return f"{shown}\n\nNot stated yet: {keys}. The recipe gives them under `[freeze.citation]`."


def _splits(rows: Rows) -> str:
    tally = Counter((row["split"], row["label"]) for row in rows)
    splits = dict.fromkeys(row["split"] for row in rows)
    sources = {split: {r["source_video"] for r in rows if r["split"] == split} for split in splits}
    return markdown_table(
        ("split", "real", "generated", "source videos"),
        (
            (split, tally[split, "real"], tally[split, "generated"], len(sources[split]))
            for split in splits
        ),
    )


def _sources(rows: Rows) -> str:
    by_source = _group(rows, lambda row: row["creator"] if row["label"] == "generated" else "real")
    names = sorted(by_source, key=lambda name: (name != "real", -len(by_source[name]), name))
    return markdown_table(
        ("source", "clips", "explained", "resolution", "length in s: least, median, most"),
        (
            (
                name,
                len(by_source[name]),
                _explained(by_source[name]),
                _sizes(by_source[name]),
                _length_range(by_source[name]),
            )
            for name in names
        ),
    )


def _explained(rows: Rows) -> str:
    traces = [trace for row in rows for trace in json.loads(row["traces"])]
    if not traces:
        return _NONE
    n = sum(bool(trace["explanation"]) for trace in traces)
    return f"{100 * n / len(traces):.1f} % of {len(traces)} traces"


def _sizes(rows: Rows) -> str:
    found = _by_count(Counter(_size(row) for row in rows))
    shown = ", ".join(size for size, _ in found[:_SHOWN_SIZES])
    more = len(found) - _SHOWN_SIZES
    return f"{shown} and {more} more" if more > 0 else shown


def _length_range(rows: Rows) -> str:
    lengths = [row["duration_us"] for row in rows]
    return ", ".join(_seconds(us) for us in (min(lengths), median_low(lengths), max(lengths)))


def _lengths(rows: Rows) -> str:
    tally = Counter((_length_class(row["duration_us"]), row["label"]) for row in rows)
    names = [*(f"under {s} s" for s in _LENGTHS_S), f"{_LENGTHS_S[-1]} s and more"]
    return markdown_table(
        ("length", "real", "generated"),
        (
            (name, tally[place, "real"], tally[place, "generated"])
            for place, name in enumerate(names)
        ),
    )


def _length_class(duration_us: int) -> int:
    return sum(duration_us >= s * MICROSECONDS for s in _LENGTHS_S)


def _categories(rows: Rows) -> str:
    traces = [trace for row in rows for trace in json.loads(row["traces"])]
    tally = Counter(category for trace in traces for category in trace["categories"])
    if not traces:
        return "No clip carries traces."
    lines = markdown_table(("category", "traces"), _by_count(tally))
    return f"{len(traces)} traces; one may have several categories.\n\n{lines}"


def _left_out(left_out: Sequence[LeftOut]) -> str:
    if not left_out:
        return "Nothing."
    tally = Counter((left.step, left.reason) for left in left_out)
    return markdown_table(
        ("step", "reason", "files or clips"),
        ((step, reason, n) for (step, reason), n in sorted(tally.items())),
    )


def _size(row: Mapping[str, Any]) -> str:
    return f"{row['width']} x {row['height']}"


def _seconds(duration_us: int) -> str:
    hundredths = (duration_us + 5_000) // 10_000
    return f"{hundredths // 100}.{hundredths % 100:02d}"


def _group(
    rows: Rows, key: Callable[[Mapping[str, Any]], str]
) -> dict[str, list[Mapping[str, Any]]]:
    found: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


def _by_count(tally: Counter[str]) -> list[tuple[str, int]]:
    return sorted(tally.items(), key=lambda pair: (-pair[1], pair[0]))
