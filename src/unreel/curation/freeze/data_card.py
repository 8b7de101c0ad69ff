"""Data card of a frozen benchmark, and its citation as BibTeX and CFF."""

import json
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unreel.core.safe_names import make_safe_file_name
from unreel.core.span import MICROSECONDS
from unreel.core.table_formats import build_markdown_table
from unreel.curation.recipe import SPLITS, CitationRecipeSection
from unreel.curation.segment import SegmentExclusions

_UNSAID = CitationRecipeSection()
_NOTHING = "not stated"


def list_missing_citation_keys(citation: CitationRecipeSection | None) -> list[str]:
    """Return the keys of `[freeze.citation]` that a citation needs and that the recipe does not set."""
    citation = citation or _UNSAID
    if citation.bibtex:
        return []
    url = citation.url or citation.doi
    required = {"authors": citation.authors, "year": citation.year, "url": url}
    return [key for key, value in required.items() if not value]


def format_bibtex(name: str, version: str, citation: CitationRecipeSection | None) -> str:
    """Return the recipe's BibTeX citation, or build one in which missing fields say "not stated"."""
    citation = citation or _UNSAID
    if citation.bibtex:
        return citation.bibtex.strip()
    # BibTeX would reorder the words of a group without braces.
    authors = [_escape_tex(author) for author in citation.authors]
    authors = [name if "," in name else f"{{{name}}}" for name in authors]
    fields = {
        "title": f"{{{_escape_tex(name)}}}",
        "author": " and ".join(authors) or _NOTHING,
        "year": str(citation.year or _NOTHING),
        "version": _escape_tex(version),
        "doi": citation.doi,
        "url": citation.url or ("" if citation.doi else _NOTHING),
    }
    lines = [f"  {key} = {{{value}}}," for key, value in fields.items() if value]
    return "\n".join([f"@misc{{{make_safe_file_name(name).lower()},", *lines, "}"])


def format_citation_cff(
    name: str, version: str, citation: CitationRecipeSection | None
) -> str | None:
    """Return the text of a `CITATION.cff` file; `None` without an author, which the format requires."""
    citation = citation or _UNSAID
    if not citation.authors:
        return None
    lines = [
        "cff-version: 1.2.0",
        "message: If you use this benchmark, please cite it as below.",
        "type: dataset",
        f"title: {_format_yaml_string(name)}",
        f"version: {_format_yaml_string(version)}",
        "authors:",
    ]
    for author in citation.authors:
        family, comma, first = (part.strip() for part in author.partition(","))
        key = "family-names" if comma else "name"
        lines.append(f"  - {key}: {_format_yaml_string(family)}")
        lines += [f"    given-names: {_format_yaml_string(first)}"] if comma else []
    lines += [
        f"{key}: {_format_yaml_string(value)}"
        for key in ("doi", "url")
        if (value := getattr(citation, key))
    ]
    return "\n".join(lines) + "\n"


def _escape_tex(text: str) -> str:
    plain = re.sub(r"[{}\\]", "", " ".join(text.split()))
    return re.sub(r"([%&#_$])", r"\\\1", plain)


def _format_yaml_string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


_NONE = "—"
_LENGTHS_S = (2, 4, 6, 8, 10, 20)
_SHOWN_SIZES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkCard:
    """Content of the data card of a benchmark."""

    name: str
    version: str
    about: str
    citation: CitationRecipeSection | None
    tally: "ManifestStats"
    left_out: SegmentExclusions
    audit: str
    """Result of the audit as Markdown text; without an audit, a note about that."""
    recipe: str


@dataclass(slots=True)
class _OriginCounts:
    """Numbers of resolutions, lengths and traces of all real clips, or of one creator's clips."""

    sizes: Counter[str] = field(default_factory=Counter)
    lengths_us: "array[int]" = field(default_factory=lambda: array("q"))
    n_traces: int = 0
    n_explained: int = 0


class ManifestStats:
    """Counts over the rows of a manifest for the card, collected in one pass."""

    def __init__(self) -> None:
        self.clips: Counter[tuple[str, str]] = Counter()
        """Number of clips by split and label."""
        self.licences: Counter[str] = Counter()
        self.lengths: Counter[tuple[int, str]] = Counter()
        self.categories: Counter[str] = Counter()
        self.origins: defaultdict[str, _OriginCounts] = defaultdict(_OriginCounts)
        self._sources: defaultdict[str, bytearray] = defaultdict(bytearray)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add the row of one clip to the counts."""
        label, traces = row["label"], json.loads(row["traces"])
        self.clips[row["split"], label] += 1
        self.licences[row["licence"] or "not stated"] += 1
        length_bin = sum(row["duration_us"] >= s * MICROSECONDS for s in _LENGTHS_S)
        self.lengths[length_bin, label] += 1
        self.categories.update(category for trace in traces for category in trace["categories"])
        origin = self.origins[row["creator"] if label == "generated" else "real"]
        origin.sizes[f"{row['width']} x {row['height']}"] += 1
        origin.lengths_us.append(row["duration_us"])
        origin.n_traces += len(traces)
        origin.n_explained += sum(bool(trace["explanation"]) for trace in traces)
        self._sources[row["split"]] += bytes.fromhex(row["source_video"])

    @property
    def sizes(self) -> Counter[str]:
        """Count the clips by resolution."""
        total: Counter[str] = Counter()
        for origin in self.origins.values():
            total.update(origin.sizes)
        return total

    def n_sources(self, *splits: str) -> int:
        """Count the distinct source videos of the clips in `splits`."""
        packed = b"".join(self._sources[split] for split in splits)
        return len(np.unique(np.frombuffer(packed, "S32")))


def format_benchmark_card(card: BenchmarkCard) -> str:
    """Return the data card as Markdown for dataset hubs, without dates, local paths or machine names."""
    tally = card.tally
    header = [
        "---",
        f"pretty_name: {json.dumps(card.name, ensure_ascii=False)}",
        "license: other",
        "task_categories: [video-classification]",
        "tags: [video, ai-generated, unreel]",
        "---",
    ]
    present = {split for split, _ in tally.clips}
    splits = [
        (split, tally.clips[split, "real"], tally.clips[split, "generated"], tally.n_sources(split))
        for split in SPLITS
        if split in present
    ]
    names = [*(f"under {s} s" for s in _LENGTHS_S), f"{_LENGTHS_S[-1]} s and more"]
    lengths = [
        (name, tally.lengths[index, "real"], tally.lengths[index, "generated"])
        for index, name in enumerate(names)
    ]
    n_traces = sum(origin.n_traces for origin in tally.origins.values())
    categories = "No clip has traces."
    if n_traces:
        table = build_markdown_table(("category", "traces"), _sort_by_count(tally.categories))
        categories = f"{n_traces} traces; one may have several categories.\n\n{table}"
    excluded = "Nothing."
    if card.left_out.counts:
        rows = [(step, why, n) for (step, why), n in sorted(card.left_out.counts.items())]
        excluded = build_markdown_table(("step", "reason", "files or clips"), rows)
    parts = [
        "\n".join(header),
        f"# {card.name} {card.version}",
        card.about or "A benchmark of real and generated video.",
        f"{tally.clips.total()} clips from {tally.n_sources(*SPLITS)} source videos.",
        "## Splits",
        build_markdown_table(("split", "real", "generated", "source videos"), splits),
        "Segments and near-duplicates of one source video, and clips of one scene, are in the same split.",
        "## Sources",
        _format_sources_table(tally.origins),
        "## Resolutions",
        build_markdown_table(("resolution", "clips"), _sort_by_count(tally.sizes)),
        "## Lengths",
        build_markdown_table(("length", "real", "generated"), lengths),
        "## Categories of traces",
        categories,
        "## Licences",
        build_markdown_table(("licence", "clips"), _sort_by_count(tally.licences)),
        "The manifest contains the licence and the source of each clip.",
        "## Citation",
        _format_citation(card),
        "## Label leaks",
        card.audit,
        "## Excluded",
        excluded,
        "## Recipe",
        f"```json\n{card.recipe}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _format_citation(card: BenchmarkCard) -> str:
    entry = format_bibtex(card.name, card.version, card.citation)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", entry)), default=0))
    block = f"{fence}bibtex\n{entry}\n{fence}"
    missing = list_missing_citation_keys(card.citation)
    if not missing:
        return block
    keys = ", ".join(f"`{key}`" for key in missing)
    return f"{block}\n\nNot stated yet: {keys}. Set them in the recipe under `[freeze.citation]`."


def _format_sources_table(origins: Mapping[str, _OriginCounts]) -> str:
    n_clips = {name: len(origin.lengths_us) for name, origin in origins.items()}
    rows = []
    for name in sorted(origins, key=lambda name: (name != "real", -n_clips[name], name)):
        origin, explained = origins[name], _NONE
        if origin.n_traces:
            share = 100 * origin.n_explained / origin.n_traces
            explained = f"{share:.1f} % of {origin.n_traces} traces"
        sizes = [size for size, _ in _sort_by_count(origin.sizes)]
        more = f" and {len(sizes) - _SHOWN_SIZES} more" if len(sizes) > _SHOWN_SIZES else ""
        ordered = np.sort(np.frombuffer(origin.lengths_us, np.int64))
        summary = (ordered[0], ordered[(len(ordered) - 1) // 2], ordered[-1])
        hundredths = [(int(us) + 5_000) // 10_000 for us in summary]
        lengths = ", ".join(f"{n // 100}.{n % 100:02d}" for n in hundredths)
        resolution = ", ".join(sizes[:_SHOWN_SIZES]) + more
        rows.append((name, n_clips[name], explained, resolution, lengths))
    return build_markdown_table(
        ("source", "clips", "explained", "resolution", "length in s: minimum, median, maximum"),
        rows,
    )


def _sort_by_count(tally: Counter[str]) -> list[tuple[str, int]]:
    return sorted(tally.items(), key=lambda pair: (-pair[1], pair[0]))
