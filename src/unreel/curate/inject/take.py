"""Known traces in clean clips: each chosen real clip gains a twin with one trace, and the truth about it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

from pydantic import SerializerFunctionWrapHandler, TypeAdapter, WrapSerializer

from unreel.benchmarks.entry import Entry
from unreel.core.clip import Generated
from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.core.judgement import Label
from unreel.core.trace import Category, Trace
from unreel.curate.inject.clip import inject_clip, write_twin
from unreel.curate.inject.inject import Unfit
from unreel.curate.inject.section import InjectSection
from unreel.curate.normalise.stored import StoredClip, store_clip
from unreel.curate.normalise.take import render_pieces
from unreel.curate.piece import LeftOut, Piece, Sifted, sift
from unreel.curate.state import State, Work
from unreel.curate.step import Given, StepName, Workbench
from unreel.engine.place import Place
from unreel.media.reader import MediaReader

INJECT: Final = "inject"
CREATOR: Final = "injected"
"""The creator of clips with a trace of ours."""
_WHOLE: Final = 1 << 32


def _with_sorted_categories(trace: Trace, write: SerializerFunctionWrapHandler) -> Any:
    written = write(trace)
    return written | {"categories": sorted(written["categories"])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected(StoredClip):
    """The twin with a trace, the truth about it, and the clip itself encoded in the same way."""

    category: Category
    trace: Annotated[Trace, WrapSerializer(_with_sorted_categories)]
    clean: StoredClip


@dataclass(frozen=True, slots=True, kw_only=True)
class Untouched:
    """A clip that lends itself to none of the categories."""

    trace: None = None


_FINDS: Final[TypeAdapter[Injected | Untouched]] = TypeAdapter(Injected | Untouched)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is put into a clip, as far as it is not drawn."""

    section: InjectSection
    seed: int


def take(section: InjectSection, work: Work, state: State) -> State:
    """All pieces, and a twin with a trace for the chosen share of the real ones."""
    wanted = Wanted(section=section, seed=work.recipe.seed)
    return state.after(inject_pieces(work.bench, state.pieces, wanted))


def inject_pieces(bench: Workbench, pieces: Sequence[Piece], wanted: Wanted) -> Sifted:
    """The same for any pieces.

    A clip and its twin share a group, so that they stay in one split and can be shown as a pair. The
    clip itself is encoded anew as its twin is, so that nothing but the trace tells them apart.
    """
    section, media = wanted.section, bench.media
    drawn = [
        piece
        for piece in pieces
        if piece.entry.label is Label.REAL and _draw(piece, wanted.seed) < section.share * _WHOLE
    ]
    cut = render_pieces(bench, drawn, form=None)
    taken = {piece.id for piece in drawn}
    others = [piece for piece in pieces if piece.id not in taken]
    settings = {
        "categories": [category.value for category in section.categories],
        "strength": section.strength,
        "seed": wanted.seed,
    }
    step = StepName(name=INJECT, version=1, settings=settings, finds=_FINDS)
    look = partial(_look, wanted=wanted, media=media)
    found = bench.ask(step, [piece.subject(draw=piece.clip.id) for piece in cut.pieces], look)
    twins = [
        _twin(piece, own, media)
        for piece, own in zip(cut.pieces, found, strict=True)
        if isinstance(own, Injected)
    ]
    clean = sift(INJECT, cut.pieces, found, partial(_clean, media=media))
    whole = sorted((*others, *clean.pieces, *twins), key=lambda piece: piece.entry.name)
    return Sifted(pieces=tuple(whole), left_out=(*cut.left_out, *clean.left_out))


def _draw(piece: Piece, seed: int) -> int:
    return int(digest(INJECT, str(seed), piece.clip.id)[:8], 16)


def _look(
    reader: MediaReader, file: Path, given: Given, *, wanted: Wanted, media: Place
) -> Injected | Untouched | Failure:
    """The first category, in an order drawn for the clip, that the clip lends itself to."""
    draw = digest(str(wanted.seed), given["draw"])
    order = sorted(wanted.section.categories, key=lambda category: digest(category.value, draw))
    with TemporaryDirectory(prefix="unreel-") as folder:
        into = Path(folder) / "injected.mp4"
        for category in order:
            trace = inject_clip(
                file,
                reader=reader,
                category=category,
                seed=int(draw[:8], 16),
                into=into,
                strength=wanted.section.strength,
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
            return Injected(
                made=stored.made,
                name=stored.name,
                facts=stored.facts,
                category=category,
                trace=trace,
                clean=clean,
            )
    return Untouched()


def _grouped(piece: Piece) -> Entry:
    return replace(piece.entry, group=piece.entry.group or piece.entry.name)


def _clean(piece: Piece, found: Injected | Untouched, *, media: Place) -> Piece | LeftOut:
    if isinstance(found, Untouched):
        return piece
    return replace(piece.remade(found.clean.below(media)), entry=_grouped(piece))


def _twin(piece: Piece, found: Injected, media: Place) -> Piece:
    category = found.category.value
    entry = replace(
        _grouped(piece),
        name=f"{piece.entry.name}+{category}",
        origin=Generated(creator=CREATOR, setting=category),
        traces=(found.trace,),
        rating=None,
        ratings=(),
        votes=(),
    )
    twin = replace(piece, entry=entry, cleaned=None, shots=(), fingerprint=None)
    return twin.remade(found.below(media))
