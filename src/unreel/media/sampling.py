"""Samplings: rules that select frames of a clip from its timeline, before any pixel is decoded.

A sampling is a rule with a name, such as `uniform-8`; a `Condition` stores the name. The rule and a
timeline give a `FramePlan`, the same on every machine. Every frame is planned at most once, so a
clip with too few frames is planned completely.

| name | frames |
|---|---|
| `uniform-N` | displayed in the middle of each of N equal parts of the clip's duration |
| `fps-F` | displayed 0, 1/F, 2/F, ... seconds after the first; F such as 2, 0.5 or 1/2 |
| `fps-F-max-N` | the same; if that is more than N frames, `uniform-N` |
| `window-S-E-N` | displayed in the middle of each of N equal parts of the time from S to E seconds |
| `paper-8` | 0, k, 2k, ... 7k with k = frames // 8, like Video Reality Test: without the end |
| `vlmevalkit-N` | like VLMEvalKit, N frames for models with picture input |
| `vlmevalkit-fps-F` | like VLMEvalKit, F frames per second for them |
| `video-llava-N` | like Video-LLaVA's own processor, N frames of the file |
| `video-llava-hf-N` | like VLMEvalKit, N frames for Video-LLaVA in the transformers library |
| `llamafactory-F-max-N` | like LLaMA-Factory, F frames per second, at most N |
| `dtr` | short for `fps-2`: DeepTraceReward, appendix E, for models that allow it |
| `dtr-video-llava` | short for `video-llava-8`: the same appendix for Video-LLaVA |
| `dtr-llava-onevision` | short for `fps-1-max-20`: the same appendix for LLaVA-OneVision |

A rule that is named after other people's code selects the same frames as that code, also if the
header is wrong; if that code fails, the rule documents its own choice.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unreel.core.errors import InvalidSettingError, InvalidValueError, UnknownNameError
from unreel.core.question import SAMPLING_PATTERNS

if TYPE_CHECKING:
    from unreel.media.timeline import FrameTimeline


_MAX_FRAMES = 100_000


@dataclass(frozen=True, slots=True)
class UniformSampling:
    """Sampling of the frames in the middle of each of `n` equal parts of the clip's duration."""

    n: int

    def __str__(self) -> str:
        return f"uniform-{self.n}"

    def choose(self, timeline: "FrameTimeline") -> Iterable[int]:
        half_share_s = timeline.duration_s / (2 * self.n)
        middles = ((2 * i + 1) * half_share_s for i in range(self.n))
        return (timeline.shown_at(middle) for middle in middles)


@dataclass(frozen=True, slots=True)
class WindowSampling:
    """Sampling of the middle frames of `n` equal parts of the time from `start_s` to `end_s`."""

    start_s: Fraction
    end_s: Fraction
    n: int

    def __str__(self) -> str:
        return f"window-{_format_seconds(self.start_s)}-{_format_seconds(self.end_s)}-{self.n}"

    def choose(self, timeline: "FrameTimeline") -> Iterable[int]:
        half_share_s = (self.end_s - self.start_s) / (2 * self.n)
        middles = (self.start_s + (2 * i + 1) * half_share_s for i in range(self.n))
        return (timeline.shown_at(middle) for middle in middles)


def _format_seconds(seconds: Fraction) -> str:
    return f"{float(seconds):.6f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class PerSecondSampling:
    """Sampling of a frame every 1/`fps` seconds; `UniformSampling(at_most)` if those are too many."""

    fps: Fraction
    at_most: int | None = None

    def __str__(self) -> str:
        cap = "" if self.at_most is None else f"-max-{self.at_most}"
        return f"fps-{self.fps}{cap}"

    def choose(self, timeline: "FrameTimeline") -> Iterable[int]:
        chosen = list(self._on_the_beat(timeline))
        if self.at_most is not None and len(chosen) > self.at_most:
            return UniformSampling(self.at_most).choose(timeline)
        return chosen

    def _on_the_beat(self, timeline: "FrameTimeline") -> Iterable[int]:
        beats, ticks = (self.fps * timeline.time_base).as_integer_ratio()
        first = timeline.ticks[0]
        ends = (*timeline.ticks[1:], timeline.ticks[-1] + timeline.last_ticks)
        for index, (start, end) in enumerate(zip(timeline.ticks, ends, strict=True)):
            next_beat = -(-(start - first) * beats // ticks)
            if next_beat * ticks < (end - first) * beats:
                yield index


@dataclass(frozen=True, slots=True)
class VideoRealityTestSampling:
    """Sampling of every k-th frame with k = frames // `n`, as in the Video Reality Test paper."""

    n: int

    def __str__(self) -> str:
        return f"paper-{self.n}"

    def choose(self, timeline: "FrameTimeline") -> Iterable[int]:
        step = timeline.n_frames // self.n
        return range(0, self.n * step, step) if step else range(timeline.n_frames)


@dataclass(frozen=True, slots=True)
class VlmEvalKitCountSampling:
    """Sampling of `n` frames at the inner borders of `n` + 1 equal parts of the frame count.

    Source: open-compass/VLMEvalKit at 0a79169, vlmeval/dataset/video_base.py, `save_video_frames`
    with a number of frames; decord counts them, as here, from the packets. Its binary floating
    point is part of the rule. Models that receive the file, such as Video-LLaVA, sample themselves.
    """

    n: int

    def __str__(self) -> str:
        return f"vlmevalkit-{self.n}"

    def choose(self, timeline: "FrameTimeline") -> Iterable[int]:
        step = timeline.n_frames / (self.n + 1)
        return (int(i * step) for i in range(1, self.n + 1))


@dataclass(frozen=True, slots=True)
class VlmEvalKitRateSampling:
    """Sampling of one frame every (header frame rate / `fps`) frames, starting at frame 0.

    Source: the function named in `VlmEvalKitCountSampling`, called with `fps`; decord reads the
    frame rate there. For a clip shorter than 1 / `fps` seconds, that function returns no frame;
    this class returns the first frame.
    """

    fps: Fraction

    def __str__(self) -> str:
        return f"vlmevalkit-fps-{self.fps}"

    def choose(self, timeline: "FrameTimeline") -> Iterable[int]:
        clip_fps, fps = float(timeline.declared_rate), float(self.fps)
        n = max(1, int(timeline.n_frames / clip_fps * fps))
        step = clip_fps / fps
        last = timeline.n_frames - 1
        if step <= 1:  # All frames are sampled, even if the rule repeats some of them.
            return range(min(int((n - 1) * step), last) + 1)
        return (min(int(i * step), last) for i in range(n))


@dataclass(frozen=True, slots=True)
class VideoLlavaSampling:
    """Sampling of `n` frames, evenly spaced by frame count from the first frame to the last.

    Source: Video-LLaVA's own video processor in its decord branch, compared with a copy whose
    commit is unknown; VLMEvalKit's `VideoLLaVA` passes the file to that processor. `n` is 8 there.
    The processor repeats frames of a short clip; here every frame is shown once.
    """

    n: int

    def __str__(self) -> str:
        return f"video-llava-{self.n}"

    def choose(self, timeline: "FrameTimeline") -> Iterable[int]:
        return map(int, np.linspace(0, timeline.n_frames - 1, self.n, dtype=int))


@dataclass(frozen=True, slots=True)
class VideoLlavaHfSampling:
    """Sampling of the first frame of each of `n` equal parts of the header's frame count.

    Source: open-compass/VLMEvalKit at 052f58b, vlmeval/vlm/video_llm/video_llava.py,
    `VideoLLaVA_HF.generate_inner`. Declared frames that do not exist are excluded. If the header
    declares no frame count, that code fails; this class uses the counted frames.
    """

    n: int

    def __str__(self) -> str:
        return f"video-llava-hf-{self.n}"

    def choose(self, timeline: "FrameTimeline") -> Iterable[int]:
        claimed = timeline.declared_frames or timeline.n_frames
        return _iter_existing_frame_indices(np.arange(0, claimed, claimed / self.n), timeline)


@dataclass(frozen=True, slots=True)
class LlamaFactorySampling:
    """Sampling of length x `fps` frames, at most `at_most`, evenly spaced from the first to the last.

    Length and frame count are the values declared in the header.
    Source: hiyouga/LLaMA-Factory, src/llamafactory/data/mm_plugin.py, `_get_video_sample_indices`
    and `_regularize_videos`, in the version that supports videos without a frame count; compared
    with copies of that file whose commit is unknown. If the header declares no frame count, as in
    Matroska, the first `at_most` frames are taken. Declared frames that do not exist are excluded.
    If the stream has no length, that code fails; this class uses the container's length.
    The Qwen plugins of LLaMA-Factory later repeat the last frame of an odd number of frames. That
    step is not part of sampling and is not done here.
    """

    fps: Fraction
    at_most: int

    def __str__(self) -> str:
        return f"llamafactory-{self.fps}-max-{self.at_most}"

    def choose(self, timeline: "FrameTimeline") -> Iterable[int]:
        claimed = timeline.declared_frames
        if not claimed:
            return range(min(self.at_most, timeline.n_frames))
        n = max(1, int(float(timeline.declared_s) * float(self.fps)))
        return _iter_existing_frame_indices(
            np.linspace(0, claimed - 1, min(claimed, self.at_most, n)), timeline
        )


Sampling = (
    UniformSampling
    | WindowSampling
    | PerSecondSampling
    | VideoRealityTestSampling
    | VlmEvalKitCountSampling
    | VlmEvalKitRateSampling
    | VideoLlavaSampling
    | VideoLlavaHfSampling
    | LlamaFactorySampling
)


def _iter_existing_frame_indices(
    positions: NDArray[np.float64], timeline: "FrameTimeline"
) -> Iterable[int]:
    return (int(position) for position in positions if position < timeline.n_frames)


@dataclass(frozen=True, slots=True, kw_only=True)
class FramePlan:
    """Indices and times of the frames to decode from one clip, in display order."""

    sampling: str
    indices: tuple[int, ...]
    at_s: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        rising = all(before < after for before, after in pairwise(self.indices))
        if not self.indices or not rising or len(self.indices) != len(self.at_s):
            raise InvalidValueError("a plan must have rising indices, each with its time")


def get_max_sampled_frames(sampling: Sampling) -> int:
    """Return the maximum number of frames that `sampling` selects from any clip."""
    match sampling:
        case PerSecondSampling(at_most=limit) | LlamaFactorySampling(at_most=limit):
            return _MAX_FRAMES if limit is None else limit
        case VlmEvalKitRateSampling():
            return _MAX_FRAMES
        case _:
            return sampling.n


def parse_sampling(name: str) -> Sampling:
    """Parse the name of a sampling, such as `uniform-8`.

    Raise `UnknownNameError` if the name matches no known pattern, or `InvalidSettingError` if the
    number of frames or the rate is out of range.
    """
    for pattern, build in _RULES.items():
        if match := pattern.fullmatch(name):
            return build(*match.groups())
    raise UnknownNameError("sampling plan", name, SAMPLING_PATTERNS)


def plan_frames(sampling: Sampling, timeline: "FrameTimeline") -> FramePlan:
    """Return the plan of the frames that `sampling` selects from a clip: at least one frame."""
    indices = tuple(sorted(set(sampling.choose(timeline))))
    at_s = tuple(timeline.at_s(index) for index in indices)
    return FramePlan(sampling=str(sampling), indices=indices, at_s=at_s)


def _parse_frame_count(text: str) -> int:
    count = int(text)
    if not 1 <= count <= _MAX_FRAMES:
        raise InvalidSettingError(
            "sampling", f"cannot take {text} frames", f"Give a whole number from 1 to {_MAX_FRAMES}"
        )
    return count


def _build_window_sampling(start: str, end: str, n: str) -> WindowSampling:
    if not Fraction(start) < Fraction(end):
        raise InvalidSettingError(
            "sampling",
            f"a window from {start} to {end} s holds no time",
            "Give its start before its end",
        )
    return WindowSampling(Fraction(start), Fraction(end), _parse_frame_count(n))


def _parse_frame_rate(text: str) -> Fraction:
    above, _, below = text.partition("/")
    divisor = int(below or 1)
    rate = Fraction(above) / divisor if divisor else Fraction(0)
    if not 0 < rate <= _FASTEST:
        raise InvalidSettingError(
            "sampling",
            f"cannot take {text} frames a second",
            f"Give a rate above 0 and up to {_FASTEST}",
        )
    return rate


_FASTEST = 1_000
_N = r"([0-9]{1,6})"
_F = r"([0-9]{1,6}(?:/[0-9]{1,6}|\.[0-9]{1,6})?)"
_S = r"([0-9]{1,6}(?:\.[0-9]{1,6})?)"
_RULES: dict[re.Pattern[str], Callable[..., Sampling]] = {
    re.compile(f"uniform-{_N}"): lambda n: UniformSampling(_parse_frame_count(n)),
    re.compile(f"fps-{_F}"): lambda f: PerSecondSampling(_parse_frame_rate(f)),
    re.compile(f"fps-{_F}-max-{_N}"): lambda f, n: PerSecondSampling(
        _parse_frame_rate(f), _parse_frame_count(n)
    ),
    re.compile(f"window-{_S}-{_S}-{_N}"): _build_window_sampling,
    re.compile("paper-8"): lambda: VideoRealityTestSampling(8),
    re.compile(f"vlmevalkit-{_N}"): lambda n: VlmEvalKitCountSampling(_parse_frame_count(n)),
    re.compile(f"vlmevalkit-fps-{_F}"): lambda f: VlmEvalKitRateSampling(_parse_frame_rate(f)),
    re.compile(f"video-llava-{_N}"): lambda n: VideoLlavaSampling(_parse_frame_count(n)),
    re.compile(f"video-llava-hf-{_N}"): lambda n: VideoLlavaHfSampling(_parse_frame_count(n)),
    re.compile("dtr"): lambda: PerSecondSampling(Fraction(2)),
    re.compile("dtr-video-llava"): lambda: VideoLlavaSampling(8),
    re.compile("dtr-llava-onevision"): lambda: PerSecondSampling(Fraction(1), 20),
    re.compile(f"llamafactory-{_F}-max-{_N}"): lambda f, n: LlamaFactorySampling(
        _parse_frame_rate(f), _parse_frame_count(n)
    ),
}
