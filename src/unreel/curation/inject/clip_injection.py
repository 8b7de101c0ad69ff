"""Injection of traces into clips, and the inject step of a curation."""

import colorsys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import SerializerFunctionWrapHandler, TypeAdapter, WrapSerializer
from scipy import signal

from unreel.core.box import Box
from unreel.core.clip import Generated
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label
from unreel.core.output_files import OutputDirectory
from unreel.core.span import MICROSECONDS, TimeSpan, convert_to_microseconds
from unreel.core.trace import BoxAt, Category, Trace
from unreel.curation.inject.effects import EFFECTS, TraceEffect, TraceEffectContext
from unreel.curation.inject.shot_analysis import (
    AnalysedShot,
    Mask,
    PixelWindow,
    analyse_shot,
    compute_squared_radius,
    cut_out_region,
    pad_pixel_window,
)
from unreel.curation.normalise import (
    SegmentRenderSettings,
    StoredClip,
    render_segments,
    store_clip_by_hash,
)
from unreel.curation.recipe import InjectRecipeSection
from unreel.curation.segment import (
    ClipSegment,
    CurationJob,
    CurationState,
    CurationStepResult,
    ExcludedSegment,
    ReiterableStream,
    deduplicate_segments,
    format_digest_hex,
)
from unreel.curation.step_execution import Given, VersionedCurationStep
from unreel.engine.location import StorageLocation
from unreel.media.decode import Rgb
from unreel.media.encode import SOUND_RATE_HZ, ClipWriter, VideoTrackSettings
from unreel.media.reader import MediaReader, SampledFrame
from unreel.media.sound import ClipSound

_SENTENCES = {
    Category.SUDDEN_BLURRING: "{Thing} {place} turns blurred from one moment to the next while all around it stays sharp.",
    Category.OBJECT_DISTORTION: "{Thing} {place} twists and wobbles as if it were made of rubber.",
    Category.OBJECT_DISAPPEARANCE: "{Thing} {place} vanishes while it should still be there.",
    Category.REDUNDANT_OBJECT: "A second copy of {thing} appears {place} and moves in step with the first.",
    Category.OBJECT_MERGING: "{Thing} {place} and what is beside it are drawn together and melt into one.",
    Category.OBJECT_SPLITTING: "{Thing} {place} splits into two copies that drift apart.",
    Category.OBJECT_TRAJECTORY: "{Thing} {place} leaves its path and jumps from side to side as it moves.",
    Category.BACKGROUND_DISTORTION: "The background {place} bends and ripples although nothing touches it.",
    Category.UNEXPECTED_MOVE: "A part of the scene {place} moves {direction} by itself, without any cause, while all around it stays.",
}
_GREY = 0.18
_DARK = 0.22
_BRIGHT = 0.8
_HUES = (
    (0.04, "red"),
    (0.11, "orange"),
    (0.18, "yellow"),
    (0.45, "green"),
    (0.53, "turquoise"),
    (0.7, "blue"),
    (0.8, "purple"),
    (0.94, "pink"),
    (1.0, "red"),
)


def format_trace_explanation(
    category: Category, *, box: Box, noun: str, towards: tuple[int, int]
) -> str:
    """Return one sentence that describes a trace of `category` in `box`.

    The position is the ninth of the picture that contains the centre of the box.
    """
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    column = ("left", "middle", "right")[min(2, int(3 * x))]
    row = ("top", "middle", "bottom")[min(2, int(3 * y))]
    place = f"at the {row}" if column == "middle" else f"at the {row} {column}"
    if row == "middle":
        place = "in the middle" if column == "middle" else f"on the {column}"
    across, down = towards
    direction = "down" if down > 0 else "up"
    if abs(across) >= abs(down):
        direction = "to the right" if across > 0 else "to the left"
    return _SENTENCES[category].format(
        thing=noun, Thing=noun.capitalize(), place=place, direction=direction
    )


def name_median_colour(pixels: Rgb) -> str:
    """Return the name of the median colour of `pixels`, an array of RGB values."""
    red, green, blue = (float(level) / 255 for level in np.median(pixels.reshape(-1, 3), axis=0))
    hue, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
    if value < _DARK:
        return "dark"
    if saturation < _GREY:
        return "bright" if value > _BRIGHT else "grey"
    return next(name for limit, name in _HUES if hue <= limit)


CATEGORIES = tuple(EFFECTS)
VISIBLE = 10
"""Minimum difference of a changed pixel, in levels of 255 of the channel that differs most."""
PLAIN = 24
"""Minimum difference of a plainly changed pixel, above the errors of a codec."""
SHORTEST = 6
"""Minimum number of frames: a shorter trace would be a flash."""
LONGEST = 72
"""Maximum number of frames: all of them are kept in memory."""
SMALLEST_SIDE = 64

_SHORTEST_S = 0.4
_LONGEST_S = (1.5, 1.5, 1.0, 0.7, 0.4)
"""Maximum length of the span in each attempt; if no effect suits a span, another one is tried, later a shorter one."""
_MIN_SHARE = 0.0006
"""Minimum fraction of plainly changed pixels in a frame that shows the trace."""
_MIN_PIXELS = 30
_MIN_FILL = 0.05
"""Minimum plainly changed fraction of the box."""
_CORE = 0.2
"""Squared radius of the inner part of an ellipse, which surely shows the object whose colour is named."""
_MIN_VISIBLE = 0.6
"""Minimum fraction of the planned frames that must show the trace."""


@dataclass(frozen=True, slots=True)
class UnsuitableClip:
    """Clip into which no trace of `category` can be injected, with the reason."""

    category: Category
    why: str

    def __str__(self) -> str:
        return f"no {self.category.value} can be put into this clip: {self.why}"


@dataclass(frozen=True, slots=True, eq=False)
class InjectedFrames:
    """Result of an injection: the changed frames by index, their changed pixels, and the trace."""

    frames: Mapping[int, Rgb]
    changed: Mapping[int, Mask]
    """Mask of the visibly changed pixels in each of these frames."""
    trace: Trace


def inject_trace_into_frames(
    frames: Sequence[Rgb],
    *,
    instants_us: Sequence[int],
    category: Category,
    seed: int,
    strength: float = 0.7,
) -> InjectedFrames | UnsuitableClip:
    """Inject a trace of `category` into `frames`; the result is deterministic for the same `seed`.

    The box of each frame touches its outermost changed pixels; no pixel differs before and after
    the span. `frames` may decode on demand, because a few are read at a time. `strength` is above 0
    and at most 1.
    """
    if category not in EFFECTS:
        raise InvalidValueError(
            f"{category.value!r} cannot be injected. Use one of: {', '.join(EFFECTS)}"
        )
    if not 0 < strength <= 1:
        raise InvalidValueError(f"strength must be above 0 and at most 1, got {strength}")
    if len(frames) != len(instants_us):
        raise InvalidValueError(
            f"{len(instants_us)} instants for {len(frames)} frames. Give one for each"
        )
    if len(frames) < SHORTEST + 2:
        return UnsuitableClip(
            category, f"the clip has {len(frames)} frames, fewer than {SHORTEST + 2}"
        )
    if min(frames[0].shape[:2]) < SMALLEST_SIDE:
        return UnsuitableClip(
            category, f"the clip is less than {SMALLEST_SIDE} pixels wide or high"
        )
    rng = np.random.default_rng([seed, int(digest(category.value)[:8], 16)])
    for longest_s in _LONGEST_S:
        # A random span; one frame or more stays unchanged on both sides.
        step_us = (instants_us[-1] - instants_us[0]) / (len(instants_us) - 1)
        n_wanted = round(rng.uniform(_SHORTEST_S, longest_s) * MICROSECONDS / max(1.0, step_us))
        n = int(min(max(SHORTEST, n_wanted), LONGEST, len(instants_us) - 2))
        first = int(rng.integers(1, len(instants_us) - n))
        shot = analyse_shot(frames, first=first, n=n)
        if shot is None:
            continue
        for effect in EFFECTS[category](TraceEffectContext(shot, rng, strength)):
            injected = _render_trace_effect(effect, shot, category, instants_us)
            if injected is not None:
                return injected
    return UnsuitableClip(category, _WANTED[category])


_MOTION = "no object moves clearly enough against what is behind it, with room around it"
_WANTED: Mapping[Category, str] = {
    Category.SUDDEN_BLURRING: "nothing in it has detail to lose and can be followed",
    Category.OBJECT_DISTORTION: "nothing in it has detail to bend and can be followed",
    Category.OBJECT_DISAPPEARANCE: _MOTION,
    Category.REDUNDANT_OBJECT: _MOTION,
    Category.OBJECT_MERGING: "no moving object stays close to something else with detail",
    Category.OBJECT_SPLITTING: _MOTION,
    Category.OBJECT_TRAJECTORY: _MOTION,
    Category.BACKGROUND_DISTORTION: "no place with detail stays apart from what moves",
    Category.UNEXPECTED_MOVE: "no place with detail stays apart from what moves",
}


def find_changed_pixels(before: Rgb, after: Rgb, *, levels: int = VISIBLE) -> Mask:
    """Return a mask of pixels that differ by `levels` or more in any channel."""
    difference = np.abs(before.astype(np.int16) - after.astype(np.int16)).max(axis=2)
    changed: Mask = difference >= levels
    return changed


def find_mask_bounds(changed: Mask) -> PixelWindow | None:
    """Return the smallest window around all true pixels of the mask; `None` if there are none."""
    rows, columns = np.nonzero(changed.any(axis=1))[0], np.nonzero(changed.any(axis=0))[0]
    if not len(rows):
        return None
    return PixelWindow(int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)


def _render_trace_effect(
    effect: TraceEffect, shot: AnalysedShot, category: Category, instants_us: Sequence[int]
) -> InjectedFrames | None:
    """Render the effect on its frames and build its trace; `None` if it is not visible enough."""
    run = effect.run or range(shot.n)
    if len(run) < SHORTEST or _render_visible_change(effect, shot, run[len(run) // 2]) is None:
        return None
    changes = ((index, _render_visible_change(effect, shot, index)) for index in run)
    visible = {index: change for index, change in changes if change is not None}
    if len(visible) < _MIN_VISIBLE * len(run) or max(visible) - min(visible) >= len(visible):
        return None
    frames = {shot.first + index: frame for index, (frame, _) in visible.items()}
    changed = {shot.first + index: mask for index, (_, mask) in visible.items()}
    trace = _build_injected_trace(effect, shot, category, changed=changed, instants_us=instants_us)
    return InjectedFrames(frames, changed, trace)


def _render_visible_change(
    effect: TraceEffect, shot: AnalysedShot, index: int
) -> tuple[Rgb, Mask] | None:
    """Render the effect on one frame of the shot; `None` if too few pixels change visibly."""
    clean, frame = shot.picture(index), effect.paint(index)
    changed = find_changed_pixels(clean, frame)
    box = find_mask_bounds(changed)
    n_plain = int(find_changed_pixels(clean, frame, levels=PLAIN).sum())
    if box is None or n_plain < max(_MIN_PIXELS, _MIN_SHARE * changed.size):
        return None
    return (frame, changed) if n_plain >= _MIN_FILL * box.area else None


def _build_injected_trace(
    effect: TraceEffect,
    shot: AnalysedShot,
    category: Category,
    *,
    changed: Mapping[int, Mask],
    instants_us: Sequence[int],
) -> Trace:
    """Build the ground-truth trace of the injected effect from the changed pixels."""
    width, height = shot.size
    track = []
    for index, mask in changed.items():
        box = find_mask_bounds(mask)
        if box is not None:
            marked = pad_pixel_window(box, 1, frame=shot.size).as_box(width, height)
            track.append(BoxAt(instants_us[index], marked))
    middle = len(track) // 2
    cut = cut_out_region(shot, effect.about, min(changed) + middle - shot.first)
    if effect.about.silhouettes is None:
        solid = cut.patch[compute_squared_radius(cut.window) < _CORE].astype(np.uint8)
    else:
        solid = cut.patch[cut.alpha[..., 0] > 0.5].astype(np.uint8)  # noqa: PLR2004  more than half
    colour = name_median_colour(solid if len(solid) else cut.patch.astype(np.uint8))
    kind = "object" if effect.about.is_object else "part of the picture"
    return Trace(
        span=TimeSpan(instants_us[min(changed)], instants_us[max(changed) + 1]),
        track=tuple(track),
        categories=frozenset({category}),
        explanation=format_trace_explanation(
            category, box=track[middle].box, noun=f"the {colour} {kind}", towards=effect.towards
        ),
    )


LONGEST_SIDE = 1280
"""Maximum side of a frame in pixels, because the changed frames of a span are kept in memory."""
LONGEST_S = 3600
"""Maximum length as in `MAX_SAMPLES`, because the sound of the whole clip is kept in memory."""
_EVERY_FRAME = "fps-1000"
_JPEG_QUALITY = 95
"""JPEG quality with which all frames of a clip fit into memory and hardly differ."""
_AT_HAND = 4
"""Number of decoded frames in the cache: effects read a frame several times."""
_FINE = Fraction(1, 90_000)
# One quantiser for all frames and key frames at fixed distances: changed frames neither affect the
# coding of the others, nor cause a key frame at the start of the trace.
_CODING = {"qp": "16", "preset": "veryfast", "bf": "0", "g": "48", "sc_threshold": "0"}


@dataclass(frozen=True, slots=True, eq=False)
class LoadedClip:
    """Clip in memory: all frames as JPEG images that are decoded on access, and the sound."""

    pictures: "JpegFrames"
    ticks: tuple[int, ...]
    """Timestamp of each frame in units of `time_base`, relative to the first frame."""
    time_base: Fraction
    rate: Fraction
    sound: NDArray[np.int16] | None
    """Samples at 48 kHz, one channel, from the first frame on; `None` without sound."""

    @property
    def instants_us(self) -> tuple[int, ...]:
        """Return the timestamp of each frame of the clip in microseconds, counted from the first frame."""
        return tuple(convert_to_microseconds(tick * self.time_base) for tick in self.ticks)


class JpegFrames(Sequence[Rgb]):
    """Sequence of frames that are decoded on access and cropped to an even width and height."""

    def __init__(self, frames: Sequence[SampledFrame]) -> None:
        self._frames = frames
        self._rgb = lru_cache(maxsize=_AT_HAND)(self._decode)

    def __len__(self) -> int:
        return len(self._frames)

    @overload
    def __getitem__(self, index: int) -> Rgb: ...
    @overload
    def __getitem__(self, index: slice) -> "JpegFrames": ...
    def __getitem__(self, index: int | slice) -> "Rgb | JpegFrames":
        if isinstance(index, slice):
            return JpegFrames(self._frames[index])
        return self._rgb(index)

    def _decode(self, index: int) -> Rgb:
        rgb = self._frames[index].rgb()
        return rgb[: rgb.shape[0] // 2 * 2, : rgb.shape[1] // 2 * 2]


def inject_trace_into_clip(
    path: Path,
    *,
    reader: MediaReader,
    category: Category,
    seed: int,
    into: Path,
    strength: float = 0.7,
) -> Trace | UnsuitableClip | Failure:
    """Write the clip at `path` with a trace of `category` to `into`, and return the trace.

    Equal seeds give equal bytes. Frames larger than `LONGEST_SIDE` are scaled down. The times of
    the trace refer to the written clip, whose first frame appears at 0. Nothing is written if the
    clip is unsuitable or cannot be read.
    """
    clip = load_clip_frames(path, reader=reader)
    if isinstance(clip, Failure):
        return clip
    injected = inject_trace_into_frames(
        clip.pictures, instants_us=clip.instants_us, category=category, seed=seed, strength=strength
    )
    if isinstance(injected, UnsuitableClip):
        return injected
    changed = injected.frames
    indices = range(len(clip.pictures))
    pictures = (changed[i] if i in changed else clip.pictures[i] for i in indices)
    OutputDirectory(into.parent).write(into.name, encode_loaded_clip(clip, pictures))
    return injected.trace


def write_clean_twin(path: Path, *, reader: MediaReader, into: Path) -> Failure | None:
    """Write the clip at `path` to `into`, encoded like `inject_trace_into_clip` but without a trace."""
    clip = load_clip_frames(path, reader=reader)
    if isinstance(clip, Failure):
        return clip
    OutputDirectory(into.parent).write(into.name, encode_loaded_clip(clip, iter(clip.pictures)))
    return None


def load_clip_frames(
    path: Path, *, reader: MediaReader, longest_side: int = LONGEST_SIDE
) -> LoadedClip | Failure:
    """Load the clip at `path` into memory: frames, scaled down to `longest_side`, and sound."""
    facts = reader.probe(path)
    if isinstance(facts, Failure):
        return facts
    frames = reader.frames(
        path, sampling=_EVERY_FRAME, quality=_JPEG_QUALITY, longest_side=longest_side
    )
    if isinstance(frames, Failure):
        return frames
    decoded = reader.sound(path) if facts.audio else None
    if isinstance(decoded, Failure):
        return decoded
    rate = facts.video.average_rate
    if facts.video.variable_rate or len(frames.frames) != facts.video.n_frames:
        time_base = _FINE
        ticks = tuple(round(frame.at_s / _FINE) for frame in frames.frames)
    else:
        time_base, ticks = 1 / rate, tuple(range(len(frames.frames)))
    end_s = (ticks[-1] + 1 / (rate * time_base)) * time_base
    if end_s > LONGEST_S:
        return Failure(FailureReason.TOO_LONG, f"a clip to inject into lasts {LONGEST_S} s at most")
    sound = None if decoded is None else align_clip_sound(decoded, end_s=end_s)
    return LoadedClip(JpegFrames(frames.frames), ticks, time_base, rate, sound)


def encode_loaded_clip(clip: LoadedClip, pictures: Iterator[Rgb]) -> bytes:
    """Return an MP4 file of `pictures` with the timestamps and the sound of `clip`."""
    height, width, _ = clip.pictures[0].shape
    track = VideoTrackSettings(
        codec="libx264",
        width=width,
        height=height,
        rate=clip.rate.limit_denominator(1 << 16),
        time_base=clip.time_base,
        options=_CODING,
    )
    done = 0
    with ClipWriter("mp4", track, n_channels=0 if clip.sound is None else 1) as writer:
        for tick, rgb in zip(clip.ticks, pictures, strict=True):
            writer.add_picture(rgb, tick=tick)
            if clip.sound is not None:
                until = int(tick * clip.time_base * SOUND_RATE_HZ)
                writer.add_sound(clip.sound[done:until])
                done = until
        if clip.sound is not None:
            writer.add_sound(clip.sound[done:])
        return writer.finish()


def align_clip_sound(sound: ClipSound, *, end_s: Fraction) -> NDArray[np.int16]:
    """Return the sound at 48 kHz from the start of the first frame to the end of the last frame."""
    finer = signal.resample_poly(
        sound.samples.astype(np.float64), SOUND_RATE_HZ // sound.rate_hz, 1
    )
    samples = np.zeros((int(end_s * SOUND_RATE_HZ), 1), np.int16)
    start = round(sound.start_s * SOUND_RATE_HZ)
    segment = finer[max(0, -start) : len(samples) - start]
    begin = max(0, start)
    samples[begin : begin + len(segment), 0] = np.clip(np.rint(segment), -32_768, 32_767)
    return samples


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


def run_inject_step(
    section: InjectRecipeSection, job: CurationJob, state: CurationState
) -> CurationState:
    """Add, for the fraction of real segments in the recipe, a twin with one injected trace.

    A clip and its twin share a group, so that they stay in one split and can be shown as a pair.
    The clip itself is encoded again like its twin, so that only the trace distinguishes them.
    """
    context, segments, seed = job.context, state.segments, job.recipe.seed
    # Real segments, sampled by content hash and seed.
    selected: NDArray[np.bool_] = segments.strings("label") == Label.REAL.value
    clips = segments.rows.digests("clip")
    for index in np.flatnonzero(selected):
        number = int(digest(INJECT, str(seed), format_digest_hex(clips[index]))[:8], 16)
        selected[index] = number < section.share * _WHOLE
    cut = render_segments(
        job, segments.where(selected), SegmentRenderSettings(form=None, step="inject-cut")
    )
    settings = {
        "categories": [category.value for category in section.categories],
        "strength": section.strength,
        "seed": seed,
    }
    step = VersionedCurationStep(name=INJECT, version=1, settings=settings, finds=_FINDS)
    look = partial(_inject_first_category, section=section, seed=seed, media_location=context.media)
    requests = ReiterableStream(lambda: (s.subject(draw=s.clip.id) for s in cut.segments))
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
                group = segment.entry.group or segment.entry.name
                grouped = replace(segment.entry, group=group)
                clean = segment.remade(result.clean.below(media_location))
                yield replace(clean, entry=grouped)
                category = result.category.value
                entry = replace(
                    grouped,
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
    section: InjectRecipeSection,
    seed: int,
    media_location: StorageLocation,
) -> StoredInjectedTwin | UninjectedClip | Failure:
    """Inject a trace of the first suitable category, in a random order for the clip, and store it."""
    draw = digest(str(seed), inputs["draw"])
    order = sorted(section.categories, key=lambda category: digest(category.value, draw))
    with TemporaryDirectory(prefix="unreel-") as folder:
        into = Path(folder) / "injected.mp4"
        for category in order:
            trace = inject_trace_into_clip(
                file,
                reader=reader,
                category=category,
                seed=int(draw[:8], 16),
                into=into,
                strength=section.strength,
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
