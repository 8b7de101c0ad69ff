"""Inject step: adds, for real clips, a twin with one injected trace and its ground truth."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import SerializerFunctionWrapHandler, TypeAdapter, WrapSerializer

from unreel.benchmarks.entry import Entry
from unreel.core.clip import Generated
from unreel.core.content_ids import digest
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.trace import Category, Trace
from unreel.curation.inject.clip_injection import inject_trace_into_clip, write_clean_twin
from unreel.curation.inject.frame_injection import UnsuitableClip
from unreel.curation.normalise import (
    SegmentRenderSettings,
    StoredClip,
    render_segments,
    store_clip_by_hash,
)
from unreel.curation.recipe import InjectRecipeSection
from unreel.curation.segment import ClipSegment, ExcludedSegment
from unreel.curation.segment_table import (
    CurationStepResult,
    ReiterableStream,
    SegmentTable,
    deduplicate_segments,
)
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step_execution import CurationStepRequest, Given, VersionedCurationStep
from unreel.curation.working_table import format_digest_hex
from unreel.engine.location import StorageLocation
from unreel.media.reader import MediaReader

INJECT: Final = "inject"
CREATOR: Final = "injected"
"""Creator of clips with an injected trace."""
_WHOLE: Final = 1 << 32


def _serialise_sorted_categories(trace: Trace, write: SerializerFunctionWrapHandler) -> Any:
    written = write(trace)
    return written | {"categories": sorted(written["categories"])}


StoredTrace = Annotated[Trace, WrapSerializer(_serialise_sorted_categories)]
"""Trace in the table of a step, with sorted categories: equal traces give equal text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredInjectedTwin(StoredClip):
    """Stored twin of a clip with an injected trace, and the clip itself encoded in the same way."""

    category: Category
    trace: StoredTrace
    clean: StoredClip


@dataclass(frozen=True, slots=True, kw_only=True)
class UninjectedClip:
    """Result for a clip into which no trace of any category could be injected."""

    trace: None = None


_FINDS: Final[TypeAdapter[StoredInjectedTwin | UninjectedClip]] = TypeAdapter(
    StoredInjectedTwin | UninjectedClip
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionSettings:
    """Recipe section and seed of the injection step."""

    section: InjectRecipeSection
    seed: int


def run_inject_step(
    section: InjectRecipeSection, work: CurationJob, state: CurationState
) -> CurationState:
    """Add, for the fraction of real segments in the recipe, a twin with one injected trace.

    A clip and its twin share a group, so that they stay in one split and can be shown as a pair.
    The clip itself is encoded again like its twin, so that only the trace distinguishes them.
    """
    injection = InjectionSettings(section=section, seed=work.recipe.seed)
    context, pieces = work.bench, state.pieces
    selected = _select_segments_to_inject(pieces, injection)
    cut = render_segments(
        work, pieces.where(selected), SegmentRenderSettings(form=None, step="inject-cut")
    )
    settings = {
        "categories": [category.value for category in section.categories],
        "strength": section.strength,
        "seed": injection.seed,
    }
    step = VersionedCurationStep(name=INJECT, version=1, settings=settings, finds=_FINDS)
    look = partial(_inject_first_category, injection=injection, media=context.media)
    requests = ReiterableStream(lambda: map(_build_inject_request, cut.pieces))
    results = context.ask(step, requests, look)
    unchanged: Iterable[ClipSegment] = pieces.where(~selected)
    twinned = _iter_segments_with_twins(zip(cut.pieces, results, strict=True), context.media)
    sifted = work.shelf.sift(INJECT, chain(unchanged, twinned))
    # Files that differ only in their tags have the same encoding.
    once, doubled = deduplicate_segments(sifted.pieces.by_name(), step=INJECT)
    excluded = cut.left_out + sifted.left_out + work.shelf.leave(f"{INJECT}-same", doubled)
    return state.after(CurationStepResult(pieces=once, left_out=excluded))


def _select_segments_to_inject(
    pieces: SegmentTable, injection: InjectionSettings
) -> NDArray[np.bool_]:
    """Return a mask of the real segments that get a twin, sampled by content hash and seed."""
    selected: NDArray[np.bool_] = pieces.strings("label") == Label.REAL.value
    limit = injection.section.share * _WHOLE
    clips = pieces.rows.digests("clip")
    for index in np.flatnonzero(selected):
        number = _compute_sampling_number(format_digest_hex(clips[index]), injection.seed)
        selected[index] = number < limit
    return selected


def _build_inject_request(piece: ClipSegment) -> CurationStepRequest:
    return piece.subject(draw=piece.clip.id)


def _iter_segments_with_twins(
    results: Iterable[tuple[ClipSegment, StoredInjectedTwin | UninjectedClip | Failure]],
    media: StorageLocation,
) -> Iterator[ClipSegment | ExcludedSegment]:
    """Yield each selected segment and its twin with a trace, if any; exclude segments with a failure."""
    for piece, result in results:
        match result:
            case Failure():
                yield piece.left_out(INJECT, result.reason.value, result.detail)
            case UninjectedClip():
                yield piece
            case _:
                clean = piece.remade(result.clean.below(media))
                yield replace(clean, entry=_add_default_group(piece))
                yield _build_injected_twin(piece, result, media)


def _compute_sampling_number(clip: str, seed: int) -> int:
    return int(digest(INJECT, str(seed), clip)[:8], 16)


def _inject_first_category(
    reader: MediaReader,
    file: Path,
    inputs: Given,
    *,
    injection: InjectionSettings,
    media: StorageLocation,
) -> StoredInjectedTwin | UninjectedClip | Failure:
    """Inject a trace of the first suitable category, in a random order for the clip, and store it."""
    draw = digest(str(injection.seed), inputs["draw"])
    order = sorted(injection.section.categories, key=lambda category: digest(category.value, draw))
    with TemporaryDirectory(prefix="unreel-") as folder:
        into = Path(folder) / "injected.mp4"
        for category in order:
            trace = inject_trace_into_clip(
                file,
                reader=reader,
                category=category,
                seed=int(draw[:8], 16),
                into=into,
                strength=injection.section.strength,
            )
            if isinstance(trace, Failure):
                return trace
            if isinstance(trace, UnsuitableClip):
                continue
            stored = store_clip_by_hash(into.read_bytes(), media, reader=reader)
            if isinstance(stored, Failure):
                return stored
            failure = write_clean_twin(file, reader=reader, into=into)
            clean = failure or store_clip_by_hash(into.read_bytes(), media, reader=reader)
            if isinstance(clean, Failure):
                return clean
            return StoredInjectedTwin(
                made=stored.made,
                name=stored.name,
                facts=stored.facts,
                category=category,
                trace=trace,
                clean=clean,
            )
    return UninjectedClip()


def _add_default_group(piece: ClipSegment) -> Entry:
    return replace(piece.entry, group=piece.entry.group or piece.entry.name)


def _build_injected_twin(
    piece: ClipSegment, twin: StoredInjectedTwin, media: StorageLocation
) -> ClipSegment:
    category = twin.category.value
    entry = replace(
        _add_default_group(piece),
        name=f"{piece.entry.name}+{category}",
        origin=Generated(creator=CREATOR, setting=category),
        traces=(twin.trace,),
        rating=None,
        ratings=(),
        votes=(),
    )
    return replace(piece, entry=entry, cleaned=None).remade(twin.below(media))
