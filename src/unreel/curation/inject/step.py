"""Inject step: adds, for real clips, a twin with one injected trace and its ground truth."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import SerializerFunctionWrapHandler, TypeAdapter, WrapSerializer

from unreel.benchmarks.entry import Entry
from unreel.core.clip import Generated
from unreel.core.content_ids import digest
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.trace import Category, Trace
from unreel.curation.inject.clip_injection import (
    UnsuitableClip,
    inject_trace_into_clip,
    write_clean_twin,
)
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

INJECT = "inject"
CREATOR = "injected"
"""Creator of clips with an injected trace."""
_WHOLE = 1 << 32


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


_FINDS: TypeAdapter[StoredInjectedTwin | UninjectedClip] = TypeAdapter(
    StoredInjectedTwin | UninjectedClip
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionSettings:
    """Recipe section and seed of the injection step."""

    section: InjectRecipeSection
    seed: int


def run_inject_step(
    section: InjectRecipeSection, job: CurationJob, state: CurationState
) -> CurationState:
    """Add, for the fraction of real segments in the recipe, a twin with one injected trace.

    A clip and its twin share a group, so that they stay in one split and can be shown as a pair.
    The clip itself is encoded again like its twin, so that only the trace distinguishes them.
    """
    injection = InjectionSettings(section=section, seed=job.recipe.seed)
    context, segments = job.context, state.segments
    selected = _select_segments_to_inject(segments, injection)
    cut = render_segments(
        job, segments.where(selected), SegmentRenderSettings(form=None, step="inject-cut")
    )
    settings = {
        "categories": [category.value for category in section.categories],
        "strength": section.strength,
        "seed": injection.seed,
    }
    step = VersionedCurationStep(name=INJECT, version=1, settings=settings, finds=_FINDS)
    look = partial(_inject_first_category, injection=injection, media_location=context.media)
    requests = ReiterableStream(lambda: map(_build_inject_request, cut.segments))
    results = context.ask(step, requests, look)
    unchanged: Iterable[ClipSegment] = segments.where(~selected)
    twinned = _iter_segments_with_twins(zip(cut.segments, results, strict=True), context.media)
    sifted = job.directory.write(INJECT, chain(unchanged, twinned))
    # Files that differ only in their tags have the same encoding.
    once, doubled = deduplicate_segments(sifted.segments.by_name(), step=INJECT)
    excluded = (
        cut.left_out + sifted.left_out + job.directory.write_exclusions(f"{INJECT}-same", doubled)
    )
    return state.after(CurationStepResult(segments=once, left_out=excluded))


def _select_segments_to_inject(
    segments: SegmentTable, injection: InjectionSettings
) -> NDArray[np.bool_]:
    """Return a mask of the real segments that get a twin, sampled by content hash and seed."""
    selected: NDArray[np.bool_] = segments.strings("label") == Label.REAL.value
    limit = injection.section.share * _WHOLE
    clips = segments.rows.digests("clip")
    for index in np.flatnonzero(selected):
        number = int(digest(INJECT, str(injection.seed), format_digest_hex(clips[index]))[:8], 16)
        selected[index] = number < limit
    return selected


def _build_inject_request(segment: ClipSegment) -> CurationStepRequest:
    return segment.subject(draw=segment.clip.id)


def _iter_segments_with_twins(
    results: Iterable[tuple[ClipSegment, StoredInjectedTwin | UninjectedClip | Failure]],
    media_location: StorageLocation,
) -> Iterator[ClipSegment | ExcludedSegment]:
    """Yield each selected segment and its twin with a trace, if any; exclude segments with a failure."""
    for segment, result in results:
        match result:
            case Failure():
                yield segment.left_out(INJECT, result.reason.value, result.detail)
            case UninjectedClip():
                yield segment
            case _:
                clean = segment.remade(result.clean.below(media_location))
                yield replace(clean, entry=_add_default_group(segment))
                category = result.category.value
                entry = replace(
                    _add_default_group(segment),
                    name=f"{segment.entry.name}+{category}",
                    origin=Generated(creator=CREATOR, setting=category),
                    traces=(result.trace,),
                    rating=None,
                    ratings=(),
                    votes=(),
                )
                yield replace(segment, entry=entry, cleaned=None).remade(
                    result.below(media_location)
                )


def _inject_first_category(
    reader: MediaReader,
    file: Path,
    inputs: Given,
    *,
    injection: InjectionSettings,
    media_location: StorageLocation,
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
            stored = store_clip_by_hash(into.read_bytes(), media_location, reader=reader)
            if isinstance(stored, Failure):
                return stored
            failure = write_clean_twin(file, reader=reader, into=into)
            clean = failure or store_clip_by_hash(into.read_bytes(), media_location, reader=reader)
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


def _add_default_group(segment: ClipSegment) -> Entry:
    return replace(segment.entry, group=segment.entry.group or segment.entry.name)
