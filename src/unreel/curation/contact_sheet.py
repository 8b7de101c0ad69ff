"""Contact sheet of a curation: an HTML page with a thumbnail for each sampled clip.

The frames are decoded by a sandboxed media reader.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unreel.benchmarks.cells import is_url
from unreel.benchmarks.entry import BenchmarkLayout, Rejected
from unreel.benchmarks.folder_layout import is_path_inside
from unreel.benchmarks.loader import open_benchmark
from unreel.benchmarks.tables import read_table_rows
from unreel.core.clip import Generated
from unreel.core.content_ids import digest
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_line
from unreel.core.span import MICROSECONDS
from unreel.curation.freeze.step import find_frozen_benchmark, read_frozen_recipe
from unreel.curation.recipe import SPLITS
from unreel.curation.segment import QUARANTINE
from unreel.media.picture import encode_jpeg, scale_down_picture
from unreel.media.reader import MediaReader
from unreel.pages.html_page import build_html_page, render_template
from unreel.pages.playable_clip import build_data_uri


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactSheetCandidate:
    """Clip that may be sampled for the contact sheet, with the location of its file and its caption."""

    name: str
    location: str
    """Path or URL of the file; "" if unknown."""
    at_us: int | None = None
    """Time of the frame; `None` for the middle of the file."""
    lines: tuple[str, ...]
    """Lines of the caption below the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactSheetGroup:
    """Sampled clips and total count of a group: one split and label, or one exclusion step and reason."""

    part: str
    """Split, or exclusion step."""
    kind: str
    """Label, or reason of the exclusion."""
    n_clips: int
    chosen: tuple[ContactSheetCandidate, ...]


def sample_benchmark_clips(benchmark: Path, *, limit: int, seed: int) -> list[ContactSheetGroup]:
    """Sample up to `limit` clips of the frozen benchmark for each split and label, for a contact sheet."""
    opened = open_benchmark(benchmark, BenchmarkLayout.VIDEO_FOLDER)

    def iter_rows() -> Iterator[tuple[tuple[str, str], ContactSheetCandidate]]:
        for entry in opened:
            if isinstance(entry, Rejected):
                continue
            facts = entry.facts
            length_us = facts.duration_us
            length = "" if length_us is None else f", {length_us / MICROSECONDS:.2f} s"
            creator = entry.origin.creator if isinstance(entry.origin, Generated) else ""
            rights = ", ".join(filter(None, (entry.licence or "no licence", entry.source)))
            details = (creator, f"{facts.width} x {facts.height}{length}", rights)
            candidate = ContactSheetCandidate(
                name=entry.name, location=opened.find(entry), lines=tuple(filter(None, details))
            )
            yield (entry.split, entry.label.value), candidate

    groups = _sample_clips_by_group(iter_rows(), limit=limit, seed=seed)
    order = {name: rank for rank, name in enumerate((*SPLITS, *Label))}
    last = len(order)
    return sorted(
        groups, key=lambda group: (order.get(group.part, last), order.get(group.kind, last))
    )


def sample_excluded_clips(quarantine: Path, *, limit: int, seed: int) -> list[ContactSheetGroup]:
    """Sample up to `limit` excluded clips for each step and reason; none without the file `quarantine`."""
    if not quarantine.is_file():
        return []

    def iter_rows() -> Iterator[tuple[tuple[str, str], ContactSheetCandidate]]:
        for row in read_table_rows(quarantine):
            if isinstance(row, Rejected):
                continue
            cells = {key: value for key, value in row.items() if isinstance(value, str)}
            at_us = row.get("at_us")
            candidate = ContactSheetCandidate(
                name=cells.get("name", ""),
                location=cells.get("location", ""),
                at_us=at_us if isinstance(at_us, int) and at_us >= 0 else None,
                lines=(cells.get("detail", ""),),
            )
            yield (cells.get("step", ""), cells.get("reason", "")), candidate

    return sorted(
        _sample_clips_by_group(iter_rows(), limit=limit, seed=seed),
        key=lambda group: (group.part, group.kind),
    )


def _sample_clips_by_group(
    rows: Iterable[tuple[tuple[str, str], ContactSheetCandidate]], *, limit: int, seed: int
) -> Iterator[ContactSheetGroup]:
    heaps: defaultdict[tuple[str, str], list[tuple[int, str, ContactSheetCandidate]]] = defaultdict(
        list
    )
    counts: Counter[tuple[str, str]] = Counter()
    for group, row in rows:
        counts[group] += 1
        rank = -int(digest("sheet", str(seed), row.name), 16)
        heap = heaps[group]
        # The count makes names unique, so that candidates are never compared.
        item = (rank, f"{row.name}\0{counts[group]}", row)
        if len(heap) < limit:
            heapq.heappush(heap, item)
        else:
            heapq.heappushpop(heap, item)
    for (part, kind), n_clips in counts.items():
        chosen = tuple(sorted((row for _, _, row in heaps[part, kind]), key=lambda row: row.name))
        yield ContactSheetGroup(part=part, kind=kind, n_clips=n_clips, chosen=chosen)


PAGE = "contact-sheet.html"
_SIDE = 256
_QUALITY = 80
_OUTSIDE = "not opened: outside this folder and the curation's (--allow-outside)"
_STORED = "not opened: in an object store"
_UNKNOWN = "no location is known"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenContactSheet:
    """Result of writing a contact sheet: the path of the page, and its numbers of clips."""

    page: Path
    n_frozen: int
    n_left_out: int
    n_shown: int
    n_unseen: int
    """Number of clips that are shown without a picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactSheetSettings:
    """Settings of a contact sheet: clips per group, seed, and directories whose files may be opened."""

    max_shown: int
    """Maximum number of clips of a group."""
    seed: int
    roots: tuple[Path, ...]
    """Folders in which excluded files may be opened; empty for no restriction."""


def write_contact_sheet_page(
    folder: Path, *, settings: ContactSheetSettings, reader: MediaReader, out: Path | None = None
) -> WrittenContactSheet:
    """Write the sheet of the curation or frozen benchmark in `folder`; next to the benchmark by default."""
    benchmark = find_frozen_benchmark(folder)
    page = out or benchmark.absolute().parent / PAGE
    frozen = sample_benchmark_clips(benchmark, limit=settings.max_shown, seed=settings.seed)
    excluded = sample_excluded_clips(
        benchmark.parent / QUARANTINE, limit=settings.max_shown, seed=settings.seed
    )

    def build_groups(
        groups: list[ContactSheetGroup], roots: tuple[Path, ...]
    ) -> list[dict[str, Any]]:
        return [
            {
                "title": f"{group.part}: {group.kind}",
                "kind": group.kind,
                "n_clips": group.n_clips,
                "thumbs": [_build_thumbnail(clip, roots, reader) for clip in group.chosen],
            }
            for group in groups
        ]

    included, others = build_groups(frozen, ()), build_groups(excluded, settings.roots)
    recipe = read_frozen_recipe(benchmark)
    title = sanitise_line(
        f"{recipe.name} {recipe.freeze.version}" if recipe.freeze else recipe.name
    )
    body = render_template(
        "unreel.curation:sheet.html",
        title=title,
        frozen=included,
        left_out=others,
        max_shown=settings.max_shown,
        seed=settings.seed,
    )
    styles = ("unreel.curation:sheet.css",)
    text = build_html_page(
        title=f"{title}: contact sheet", body=body, styles=styles, scripts=(), data={}
    )
    OutputDirectory(page.absolute().parent, published=True).write(page.name, text.encode())
    thumbs = [thumb for group in (*included, *others) for thumb in group["thumbs"]]
    return WrittenContactSheet(
        page=page,
        n_frozen=sum(group.n_clips for group in frozen),
        n_left_out=sum(group.n_clips for group in excluded),
        n_shown=len(thumbs),
        n_unseen=sum(not thumb["src"] for thumb in thumbs),
    )


def _build_thumbnail(
    candidate: ContactSheetCandidate, roots: tuple[Path, ...], reader: MediaReader
) -> dict[str, Any]:
    """Return name and caption, and the picture as data URI or the problem why there is none."""
    location, path = candidate.location, Path(candidate.location)
    caption = {
        "name": sanitise_line(candidate.name),
        "lines": [sanitise_line(line) for line in candidate.lines],
        "src": "",
    }
    if not location:
        return {**caption, "problem": _UNKNOWN}
    if is_url(location):
        return {**caption, "problem": _STORED}
    if roots and not any(is_path_inside(path, root) for root in roots):
        return {**caption, "problem": _OUTSIDE}
    if candidate.at_us is None:
        sampled = reader.frames(path, sampling="uniform-1", encoding="rgb24", longest_side=_SIDE)
    else:
        sampled = reader.frames_at(path, [candidate.at_us])
    if isinstance(sampled, Failure):
        return {**caption, "problem": sanitise_line(str(sampled))}
    rgb = scale_down_picture(sampled.frames[0].rgb(), _SIDE)
    height, width, _ = rgb.shape
    src = build_data_uri(encode_jpeg(rgb, quality=_QUALITY), "image/jpeg")
    return {**caption, "src": src, "width": width, "height": height}
