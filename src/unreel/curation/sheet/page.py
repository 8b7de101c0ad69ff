"""The page of a contact sheet: one small picture of each chosen clip, taken by a confined reader."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from unreel.benchmarks.cells import is_url
from unreel.benchmarks.folders import is_inside
from unreel.core.failure import Failure
from unreel.core.plain import plain
from unreel.core.writing import OutputDirectory
from unreel.curation.frozen import find_frozen, read_frozen_recipe
from unreel.curation.piece import QUARANTINE
from unreel.curation.sheet.choose import SheetCandidate, SheetGroup, choose_frozen, choose_left_out
from unreel.media.picture import encode_jpeg, fit_longest
from unreel.media.reader import MediaReader
from unreel.pages.footage import data_uri
from unreel.pages.page import render, whole_page

PAGE: Final = "contact-sheet.html"
_SIDE: Final = 256
_QUALITY: Final = 80
_OUTSIDE: Final = "not opened: it is outside this folder and the curation's (--allow-outside)"
_STORED: Final = "not opened: it is in an object store"
_UNKNOWN: Final = "no file is known"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipThumbnail:
    """A clip as the page shows it."""

    name: str
    lines: tuple[str, ...]
    src: str
    """"" where there is no picture, and then `problem` says why."""
    width: int = 0
    height: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownGroup:
    """A group of the page."""

    title: str
    kind: str
    n_clips: int
    thumbs: tuple[ClipThumbnail, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactSheet:
    """Content and location of a contact sheet."""

    page: Path
    n_frozen: int
    n_left_out: int
    n_shown: int
    n_unseen: int
    """Shown without a picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetWish:
    """Number of clips to show, and the folders whose files may be opened."""

    most: int
    """Clips of a group."""
    seed: int
    roots: tuple[Path, ...]
    """Files left out are opened below these; empty: wherever they lie."""


def write_sheet(
    folder: Path,
    *,
    wish: SheetWish,
    reader: MediaReader,
    out: Path | None = None,
) -> ContactSheet:
    """Write the sheet of the curation or frozen benchmark in `folder`; beside the benchmark by default."""
    benchmark = find_frozen(folder)
    page = out or benchmark.absolute().parent / PAGE
    frozen = choose_frozen(benchmark, most=wish.most, seed=wish.seed)
    left_out = choose_left_out(benchmark.parent / QUARANTINE, most=wish.most, seed=wish.seed)
    shown = [_show(group, roots=(), reader=reader) for group in frozen]
    out_of = [_show(group, roots=wish.roots, reader=reader) for group in left_out]
    text = _document(_title(benchmark), shown, out_of, wish)
    OutputDirectory(page.absolute().parent, published=True).write(page.name, text.encode())
    thumbs = [thumb for group in (*shown, *out_of) for thumb in group.thumbs]
    return ContactSheet(
        page=page,
        n_frozen=sum(group.n_clips for group in frozen),
        n_left_out=sum(group.n_clips for group in left_out),
        n_shown=len(thumbs),
        n_unseen=sum(not thumb.src for thumb in thumbs),
    )


def _show(group: SheetGroup, *, roots: tuple[Path, ...], reader: MediaReader) -> ShownGroup:
    thumbs = tuple(_thumb(candidate, roots=roots, reader=reader) for candidate in group.chosen)
    title = f"{group.part}: {group.kind}"
    return ShownGroup(title=title, kind=group.kind, n_clips=group.n_clips, thumbs=thumbs)


def _thumb(
    candidate: SheetCandidate, *, roots: tuple[Path, ...], reader: MediaReader
) -> ClipThumbnail:
    name, lines = plain(candidate.name), tuple(map(plain, candidate.lines))
    problem = _closed(candidate.location, roots)
    if problem:
        return ClipThumbnail(name=name, lines=lines, src="", problem=problem)
    path = Path(candidate.location)
    if candidate.at_us is None:
        found = reader.frames(path, sampling="uniform-1", encoding="rgb24", longest_side=_SIDE)
    else:
        found = reader.frames_at(path, [candidate.at_us])
    if isinstance(found, Failure):
        return ClipThumbnail(name=name, lines=lines, src="", problem=plain(str(found)))
    rgb = fit_longest(found.frames[0].rgb(), _SIDE)
    height, width, _ = rgb.shape
    src = data_uri(encode_jpeg(rgb, quality=_QUALITY), "image/jpeg")
    return ClipThumbnail(name=name, lines=lines, src=src, width=width, height=height)


def _closed(location: str, roots: tuple[Path, ...]) -> str:
    """Return the reason why the file is not opened; "" if it may be."""
    if not location:
        return _UNKNOWN
    if is_url(location):
        return _STORED
    inside = not roots or any(is_inside(Path(location), root) for root in roots)
    return "" if inside else _OUTSIDE


def _title(benchmark: Path) -> str:
    """Its name and version."""
    recipe = read_frozen_recipe(benchmark)
    return plain(f"{recipe.name} {recipe.freeze.version}" if recipe.freeze else recipe.name)


def _document(
    title: str, frozen: Sequence[ShownGroup], left_out: Sequence[ShownGroup], wish: SheetWish
) -> str:
    body = render(
        "unreel.curation.sheet:sheet.html",
        title=title,
        frozen=frozen,
        left_out=left_out,
        most=wish.most,
        seed=wish.seed,
    )
    styles = ("unreel.curation.sheet:sheet.css",)
    return whole_page(
        title=f"{title}: contact sheet", body=body, styles=styles, scripts=(), data={}
    )
