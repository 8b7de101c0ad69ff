"""Screen step: removes unsuitable segments by screens; decisions of people take precedence.

A screen is a filter on measurements. The queue file lists the proposals and the decisions.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import numpy as np

from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.tables import read_table_rows
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.registry import LazyImport, NamedObjectRegistry
from unreel.curation.recipe import ScreeningRecipeSection
from unreel.curation.segment import ClipSegment, CurationJob, CurationState, ExcludedSegment
from unreel.media.scan import ClipScan
from unreel.recipes.validation import RecipeNumberUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipScreenInput:
    """Input of a screen: measurements of one clip; `extra` contains results of other steps by name."""

    clip: str
    duration_s: Fraction
    n_frames: int
    width: int
    height: int
    motion: float
    """Mean change of the most changing hundredth of the picture within half a second, in grey levels."""
    sharpness: float
    """Median sharpness of the picked frames."""
    noise: float
    """Median noise of the picked frames, in grey levels."""
    lightness: float
    """Mean grey level of the clip, 0 to 255."""
    extra: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class KeepClipDecision:
    """Decision of a screen or a person to keep a clip."""


@dataclass(frozen=True, slots=True)
class RemoveClipDecision:
    """Decision of a screen or a person to remove a clip, with the reason."""

    screen: str
    reason: str


Judgement = KeepClipDecision | RemoveClipDecision
Choice = Literal["keep", "remove"]
"""Decision of a person about a clip."""


class ClipScreen(Protocol):
    """Filter that keeps or removes a clip by its measurements; equal inputs give equal decisions."""

    @property
    def name(self) -> str:
        """Return the name by which recipes refer to this screen."""
        ...

    def judge(self, screen_input: ClipScreenInput) -> Judgement:
        """Return the decision to keep or remove the clip with the measurements `screen_input`."""
        ...


def build_scan_screen_input(
    scan: ClipScan, *, clip: str, extra: Mapping[str, Any] | None = None
) -> ClipScreenInput:
    """Compute the input of a screen from the scan of a clip."""
    return ClipScreenInput(
        clip=clip,
        duration_s=scan.duration_s,
        n_frames=scan.n_frames,
        width=scan.width,
        height=scan.height,
        motion=float(scan.stirs[1:].mean()) if scan.n_frames > 1 else 0.0,
        sharpness=float(np.median([frame.sharpness for frame in scan.picked])),
        noise=float(np.median([frame.noise for frame in scan.picked])),
        lightness=float(scan.lightness.mean()),
        extra=extra or {},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionScreen:
    """Screen that removes static clips, whose motion is below `least`."""

    least: Annotated[float, RecipeNumberUnit("grey levels")] = 5.0
    """Minimum motion: mean change of the most changing hundredth of the picture within half a second."""
    name: str = "motion"

    def judge(self, screen_input: ClipScreenInput) -> Judgement:
        """Decide to keep the clip if its motion is at least `least`, otherwise to remove it."""
        if screen_input.motion < self.least:
            return RemoveClipDecision(
                self.name, f"motion {screen_input.motion:.2f} is below {self.least:g}"
            )
        return KeepClipDecision()


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityScreen:
    """Screen that removes clips that are blurred, black, white or only noise.

    The limits are wide: clips that cannot be judged are removed, clips of poor quality are not.
    """

    least_sharpness: float = 0.5
    """Minimum sharpness, as the median over the sampled frames."""
    most_noise: Annotated[float, RecipeNumberUnit("grey levels")] = 15.0
    """Maximum noise, as the median over the sampled frames."""
    darkest: Annotated[float, RecipeNumberUnit("grey levels")] = 8.0
    """Minimum mean grey level of the clip, 0 to 255."""
    lightest: Annotated[float, RecipeNumberUnit("grey levels")] = 247.0
    """Maximum mean grey level of the clip, 0 to 255."""
    name: str = "quality"

    def judge(self, screen_input: ClipScreenInput) -> Judgement:
        """Decide to keep the clip if its sharpness, noise and lightness are within the limits."""
        for measure_name, value, low, high in (
            ("sharpness", screen_input.sharpness, self.least_sharpness, float("inf")),
            ("noise", screen_input.noise, 0.0, self.most_noise),
            ("lightness", screen_input.lightness, self.darkest, self.lightest),
        ):
            if not low <= value <= high:
                limit = f"below {low:g}" if value < low else f"above {high:g}"
                return RemoveClipDecision(self.name, f"{measure_name} {value:.2f} is {limit}")
        return KeepClipDecision()


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthScreen:
    """Screen that removes clips that are too short to judge or too long to watch."""

    shortest_s: Annotated[float, RecipeNumberUnit("seconds")] = 1.0
    """Minimum length of a clip."""
    longest_s: Annotated[float, RecipeNumberUnit("seconds")] = 60.0
    """Maximum length of a clip."""
    name: str = "length"

    def judge(self, screen_input: ClipScreenInput) -> Judgement:
        """Decide to keep the clip if its length is within the limits, otherwise to remove it."""
        length = f"{float(screen_input.duration_s):.3f} s"
        if screen_input.duration_s < Fraction(str(self.shortest_s)):
            return RemoveClipDecision(self.name, f"{length} is below {self.shortest_s:g} s")
        if screen_input.duration_s > Fraction(str(self.longest_s)):
            return RemoveClipDecision(self.name, f"{length} is above {self.longest_s:g} s")
        return KeepClipDecision()


SCREENS: NamedObjectRegistry[Callable[..., ClipScreen]] = NamedObjectRegistry(
    "screen",
    {
        "motion": LazyImport("unreel.curation.clip_screens:MotionScreen"),
        "quality": LazyImport("unreel.curation.clip_screens:QualityScreen"),
        "length": LazyImport("unreel.curation.clip_screens:LengthScreen"),
    },
    group="unreel.screens",
)


def build_clip_screen(name: str, settings: Mapping[str, Any] | None = None) -> ClipScreen:
    """Build the screen called `name`, built-in or from a plugin; `settings` are its keyword arguments."""
    factory = SCREENS.load(name)
    try:
        return factory(**(settings or {}))
    except TypeError as error:
        raise InvalidSettingError(
            f"screen.{name}", str(error), "Use the settings that the screen has"
        ) from error


def apply_clip_screens(
    screen_input: ClipScreenInput, screens: Sequence[ClipScreen], *, decided: Choice | None = None
) -> Judgement:
    """Return the decision about a clip: a person's if there is one, else that of the first screen that objects."""
    if decided == "keep":
        return KeepClipDecision()
    if decided == "remove":
        return RemoveClipDecision("people", "a person removed it")
    for screen in screens:
        judgement = screen.judge(screen_input)
        if isinstance(judgement, RemoveClipDecision):
            return judgement
    return KeepClipDecision()


QUEUE = "queue.jsonl"
_CHOICES: Mapping[str, Choice] = {"keep": "keep", "remove": "remove"}


def run_screen_step(
    section: ScreeningRecipeSection, job: CurationJob, state: CurationState
) -> CurationState:
    """Keep the segments that pass every screen or that a person keeps; write the queue file again."""
    screens = [build_clip_screen(name, settings) for name, settings in section.screens.items()]
    decisions = (
        {} if section.decisions is None else read_screen_decisions(job.root / section.decisions)
    )
    folder = job.directory.folder
    with folder.create_text(QUEUE) as queue:

        def judge(segment: ClipSegment) -> ClipSegment | ExcludedSegment:
            shot = segment.shots[0]
            crop, video = segment.cut.crop, segment.clip.facts.video
            choice = decisions.get(segment.id)
            findings = ClipScreenInput(
                clip=segment.clip.id,
                duration_s=segment.length_s,
                n_frames=shot.end_frame - shot.first_frame,
                width=video.width if crop is None else crop.width,
                height=video.height if crop is None else crop.height,
                motion=shot.motion,
                sharpness=shot.sharpness,
                noise=shot.noise,
                lightness=shot.lightness,
                extra=dict(segment.notes),
            )
            automatic = apply_clip_screens(findings, screens)
            removed = automatic if isinstance(automatic, RemoveClipDecision) else None
            line = {
                "piece": segment.id,
                "name": segment.entry.name,
                "label": segment.entry.label.value,
                "location": segment.clip.location,
                "start_s": str(segment.start_s),
                "length_s": str(segment.length_s),
                "proposed": "remove" if removed else "keep",
                "screen": removed.screen if removed else "",
                "reason": removed.reason if removed else "",
                "decision": choice or "",
            }
            queue.write(json.dumps(line, ensure_ascii=False) + "\n")
            judgement = (
                apply_clip_screens(findings, screens, decided=choice) if choice else automatic
            )
            if isinstance(judgement, RemoveClipDecision):
                return segment.left_out("screen", judgement.screen, judgement.reason)
            return replace(segment, shots=())  # no later step needs the measurements

        sifted = job.directory.write("screen", map(judge, state.segments))
    job.context.place.put(QUEUE, folder.root / QUEUE)
    return state.after(sifted)


def read_screen_decisions(file: Path) -> dict[str, Choice]:
    """Return the decisions of people by segment id; lines without a decision are skipped."""
    decisions: dict[str, Choice] = {}
    for number, row in enumerate(read_table_rows(file), start=1):
        if isinstance(row, Rejected):
            raise UnreadableSourceError(str(file), str(row), "Correct the line")
        word = str(row.get("decision") or "")
        if not word:
            continue
        if word not in _CHOICES or "piece" not in row:
            raise UnreadableSourceError(
                str(file), f"line {number} decides {word!r}", "Write keep or remove"
            )
        decisions[str(row["piece"])] = _CHOICES[word]
    return decisions
