"""Known traces in clean clips: each chosen real clip gains a twin with one trace, and the truth about it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pydantic import TypeAdapter

from unreel.benchmarks.entry import Entry
from unreel.core.clip import Generated
from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.core.judgement import Label
from unreel.core.trace import Category, Trace
from unreel.curate.injection.clip import inject_clip, write_twin
from unreel.curate.injection.inject import Unfit
from unreel.curate.piece import LeftOut, MadeClip, Piece, Sifted, failed_piece
from unreel.curate.render import render_pieces, store_clip
from unreel.curate.step import Found, StepName, Workbench
from unreel.engine.place import Place
from unreel.media.reader import MediaReader

INJECT: Final = "inject"
CREATOR: Final = "injected"
"""The creator of clips with a trace of ours."""
_TRACE: Final = TypeAdapter(Trace)
_WHOLE: Final = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """Which clips get a trace, and which."""

    share: float
    categories: tuple[Category, ...]
    strength: float
    seed: int


def inject_pieces(bench: Workbench, pieces: Sequence[Piece], wanted: Injection) -> Sifted:
    """All pieces, and a twin with a trace for the chosen share of the real ones.

    A clip and its twin share a group, so that they stay in one split and can be shown as a pair. The
    clip itself is encoded anew as its twin is, so that nothing but the trace tells them apart.
    """
    drawn = [
        piece
        for piece in pieces
        if piece.entry.label is Label.REAL and _draw(piece, wanted.seed) < wanted.share * _WHOLE
    ]
    cut = render_pieces(bench, drawn, form=None)
    chosen = cut.pieces
    taken = {piece.id for piece in drawn}
    others = [piece for piece in pieces if piece.id not in taken]
    settings = {
        "categories": [category.value for category in wanted.categories],
        "strength": wanted.strength,
        "seed": wanted.seed,
    }
    step = StepName(name=INJECT, version=1, settings=settings)
    look = partial(_inject, wanted=wanted, media=bench.media)
    made = bench.ask(step, [piece.subject(draw=piece.clip) for piece in chosen], look)
    out: list[LeftOut] = [*cut.left_out]
    pairs: list[Piece] = []
    for piece, found in zip(chosen, made, strict=True):
        if isinstance(found, Failure):
            out.append(failed_piece(piece, INJECT, found))
        elif found["trace"] is None:
            pairs.append(piece)
        else:
            pairs += [_clean(piece, found, bench.media), _twin(piece, found, bench.media)]
    whole = sorted((*others, *pairs), key=lambda piece: piece.entry.name)
    return Sifted(pieces=tuple(whole), left_out=tuple(out))


def _draw(piece: Piece, seed: int) -> int:
    return int(digest(INJECT, str(seed), piece.clip)[:8], 16)


def _inject(
    reader: MediaReader, file: Path, given: Found, *, wanted: Injection, media: Place
) -> Found | Failure:
    """The first category, in an order drawn for the clip, that the clip lends itself to."""
    draw = digest(str(wanted.seed), given["draw"])
    order = sorted(wanted.categories, key=lambda category: digest(category.value, draw))
    with TemporaryDirectory(prefix="unreel-") as folder:
        into = Path(folder) / "injected.mp4"
        for category in order:
            trace = inject_clip(
                file,
                reader=reader,
                category=category,
                seed=int(draw[:8], 16),
                into=into,
                strength=wanted.strength,
            )
            if isinstance(trace, Failure):
                return trace
            if isinstance(trace, Unfit):
                continue
            stored = store_clip(into.read_bytes(), media, reader=reader)
            if isinstance(stored, Failure):
                return stored
            failure = write_twin(file, reader=reader, into=into)
            clean = failure or store_clip(into.read_bytes(), media, reader=reader)
            if isinstance(clean, Failure):
                return clean
            told = {"category": category.value, "trace": _told(trace)}
            return {**stored, **told, "clean": clean}
    return {"trace": None}


def _told(trace: Trace) -> Any:
    told = _TRACE.dump_python(trace, mode="json")
    told["categories"].sort()
    return told


def _grouped(piece: Piece) -> Entry:
    return replace(piece.entry, group=piece.entry.group or piece.entry.name)


def _clean(piece: Piece, found: Found, media: Place) -> Piece:
    return _with_file(replace(piece, entry=_grouped(piece)), MadeClip.of(found["clean"], media))


def _twin(piece: Piece, found: Found, media: Place) -> Piece:
    category = found["category"]
    entry = replace(
        _grouped(piece),
        name=f"{piece.entry.name}+{category}",
        origin=Generated(creator=CREATOR, setting=category),
        traces=(_TRACE.validate_python(found["trace"]),),
        rating=None,
        ratings=(),
        votes=(),
    )
    twin = replace(piece, entry=entry, cleaned=None, measures={})
    return _with_file(twin, MadeClip.of(found, media))


def _with_file(piece: Piece, made: MadeClip) -> Piece:
    return replace(
        piece,
        clip=made.clip,
        location=made.location,
        facts=made.facts,
        length_s=made.facts.video.duration_s,
    )
