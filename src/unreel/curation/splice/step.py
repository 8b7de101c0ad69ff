"""Step that replaces the segments of a curation by spliced videos."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from unreel.benchmarks.entry import NOTHING_DECLARED
from unreel.core.clip import ClipId, Generated, Real
from unreel.core.content_ids import digest
from unreel.core.errors import MediaError
from unreel.core.failure import Failure
from unreel.core.span import TimeSpan, convert_to_microseconds
from unreel.curation.inject.step import StoredTrace
from unreel.curation.normalise import StoredClip, store_clip_by_hash
from unreel.curation.recipe import SpliceSection
from unreel.curation.segment import ClipSegment, ExcludedSegment
from unreel.curation.splice.clip import SplicedPartReader, encode_spliced_video
from unreel.curation.splice.plan import (
    SplicedPart,
    SplicedVideoPlan,
    SplicePlanner,
    group_plans,
)
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step_execution import (
    CurationStepRequest,
    Given,
    VersionedCurationStep,
    to_json_values,
)
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import (
    ClipAccessSettings,
    find_clip_change,
    provide_local_clip_file,
)
from unreel.media.normalise import NormalisedClipFormat
from unreel.media.reader import MediaReader

SPLICE: Final = "splice"
CREATOR: Final = "spliced"
"""Creator of videos with segments of several creators."""
_PARTS: Final = TypeAdapter(tuple[SplicedPart, ...])


@dataclass(frozen=True, slots=True, kw_only=True)
class SplicedClip(StoredClip):
    """Stored spliced video with its ground truth."""

    traces: tuple[StoredTrace, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpliceSettings:
    """Recipe section of the splice step, and the format of the videos."""

    section: SpliceSection
    form: NormalisedClipFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class SpliceSources:
    """Locations of the clips that a worker reads, and where it stores a video."""

    locations: Mapping[ClipId, str]
    access: ClipAccessSettings
    media: StorageLocation


def run_splice_step(
    settings: SpliceSettings, work: CurationJob, state: CurationState
) -> CurationState:
    """Replace all segments by spliced videos; unused segments are excluded."""
    state.require_pieces(SPLICE)
    context, fmt, seed = work.bench, settings.form, work.recipe.seed
    pieces = list(state.pieces)
    plans = list(SplicePlanner(pieces, settings.section, fmt.rate, seed=seed).plan())
    subjects = [_build_splice_request(plan, fmt) for plan in plans]
    step = VersionedCurationStep(
        name=SPLICE,
        version=2,
        settings={"form": to_json_values(fmt), "seed": seed},
        finds=TypeAdapter(SplicedClip),
    )
    sources = SpliceSources(
        locations={piece.clip.id: piece.clip.location for piece in pieces},
        access=context.access,
        media=context.media,
    )
    results = context.ask(
        step, subjects, partial(_splice_video, fmt=fmt, seed=seed, sources=sources)
    )
    segments = _iter_spliced_segments(plans, results, context.media)
    sifted = work.shelf.sift(SPLICE, segments)
    used = {piece.id for plan in plans for piece, _ in plan.segments}
    detail = f"too few clips are left for another video of {float(settings.section.length_s):g} s"
    unused = (p.left_out(SPLICE, "unused", detail) for p in pieces if p.id not in used)
    excluded = work.shelf.leave(f"{SPLICE}-unused", unused)
    return state.after(replace(sifted, left_out=sifted.left_out + excluded))


def get_part_spans(piece: ClipSegment) -> tuple[TimeSpan, ...]:
    """Return the time spans of the parts of a spliced video, in order."""
    counts = [n_frames for _, n_frames in piece.notes[SPLICE]]
    frame_s = piece.clip.facts.video.duration_s / sum(counts)
    ends = [convert_to_microseconds(n * frame_s) for n in accumulate(counts, initial=0)]
    return tuple(TimeSpan(*span) for span in pairwise(ends))


def _build_splice_request(plan: SplicedVideoPlan, fmt: NormalisedClipFormat) -> CurationStepRequest:
    parts: Any = _PARTS.dump_python(plan.parts(fmt), mode="json")
    return plan.segments[0][0].subject(parts=parts)


def _splice_video(
    reader: MediaReader,
    _file: Path,
    inputs: Given,
    *,
    fmt: NormalisedClipFormat,
    seed: int,
    sources: SpliceSources,
) -> SplicedClip | Failure:
    parts = _PARTS.validate_python(inputs["parts"])
    draw = int(digest(str(seed), *(part.clip for part in parts))[:8], 16)
    try:
        with ExitStack() as opened:
            files = {
                clip: opened.enter_context(
                    provide_local_clip_file(sources.locations[clip], sources.access)
                )
                for clip in dict.fromkeys(part.clip for part in parts)
            }
            part_reader = SplicedPartReader(reader, files, fmt)
            data, traces = encode_spliced_video(parts, part_reader, seed=draw)
            changed = (find_clip_change(clip, file) for clip, file in files.items())
            if failure := next((change for change in changed if change is not None), None):
                return failure
    except MediaError as error:
        return error.failure
    stored = store_clip_by_hash(data, sources.media, reader=reader)
    if isinstance(stored, Failure):
        return stored
    return SplicedClip(made=stored.made, name=stored.name, facts=stored.facts, traces=traces)


def _iter_spliced_segments(
    plans: Sequence[SplicedVideoPlan],
    results: Iterator[SplicedClip | Failure],
    media: StorageLocation,
) -> Iterator[ClipSegment | ExcludedSegment]:
    groups = group_plans(plans)
    for number, (plan, result) in enumerate(zip(plans, results, strict=True)):
        name = f"{CREATOR}-{number:05}"
        first = plan.segments[0][0]
        if isinstance(result, Failure):
            yield replace(first, entry=replace(first.entry, name=name)).left_out(
                SPLICE, result.reason.value, result.detail
            )
            continue
        creators = plan.creators
        entry = replace(
            first.entry,
            name=name,
            origin=Generated(creator=creators[0] if len(creators) == 1 else CREATOR)
            if result.traces
            else Real(),
            group=f"{CREATOR}-{groups[number]:05}",
            prompt="",
            difficulty="",
            traces=result.traces,
            rating=None,
            ratings=(),
            votes=(),
            facts=NOTHING_DECLARED,
            licence=_join_distinct_texts(piece.entry.licence for piece, _ in plan.segments),
            source=_join_distinct_texts(piece.entry.source for piece, _ in plan.segments),
        )
        notes = {SPLICE: [[piece.entry.name, n] for piece, n in plan.segments]}
        piece = replace(first, entry=entry, cleaned=None, family="", notes=notes)
        yield piece.remade(result.below(media))


def _join_distinct_texts(texts: Iterator[str]) -> str:
    return "; ".join(sorted({text for text in texts if text}))
