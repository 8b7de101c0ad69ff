"""Opinions in plain words: what the terminal and the page say alike."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal, TypeVar

from unreel.core.box import Box
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.plain import plain, plain_lines
from unreel.core.span import MICROSECONDS
from unreel.core.verdict import RealismVerdict, TraceVerdict, Unparsed, Verdict
from unreel.evaluate.opinion import Opinion, main_part

Part = TypeVar("Part")
Tone = Literal["real", "generated", "graded", "failed"]

NO_PROOF: Final = (
    "This is what reviewers say, not forensic proof: they are often wrong, and neither a verdict nor its "
    "absence is ground to accuse anybody."
)
_GRADES: Final = {1: "bad", 2: "poor", 3: "normal", 4: "good", 5: "excellent"}
_WHOLE: Final = 0.95


def seconds(at_us: int) -> str:
    """An instant or a length for people, to hundredths of a second."""
    return f"{at_us / MICROSECONDS:.2f} s"


def tone(opinion: Opinion) -> Tone:
    """Which of four colours an opinion has; no verdict is never shown as one."""
    if opinion.verdict is None or not opinion.is_readable:
        return "failed"
    match main_part(opinion.verdict):
        case Label() as label:
            return label.value
        case _:
            return "graded"


def headline(opinion: Opinion) -> str:
    """The verdict in a word or two, or that there is none."""
    if opinion.verdict is None:
        return "no answer"
    match main_part(opinion.verdict):
        case Label() as label:
            return label.value
        case int() as score:
            return f"{score} of 5 ({_GRADES[score]})"
        case _:
            return "no verdict"


def explain_failure(opinion: Opinion) -> str | None:
    """Why there is no verdict; `None` where there is one."""
    if isinstance(opinion.outcome, Failure):
        return plain(str(opinion.outcome))
    if opinion.verdict is None or opinion.is_readable:
        return None
    part = main_part(opinion.verdict)
    why = part.reason.value if isinstance(part, Unparsed) else ""
    wanted = "score" if isinstance(opinion.verdict, RealismVerdict) else "label"
    return f"the answer could not be read: its {wanted} is {why}. The text came back as it stands"


def parts(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """What a readable answer says beside its label or score; what it leaves out is named."""
    match verdict:
        case TraceVerdict() if verdict.label is Label.GENERATED:
            yield "from", _or_missing(verdict.start_us, seconds)
            yield "place", _or_missing(verdict.box, describe_box)
            yield "because", _or_missing(verdict.explanation, plain_lines)
        case RealismVerdict():
            yield "problem", _or_missing(verdict.problem, plain_lines)
            yield "in the scale's words", _or_missing(verdict.adherence, plain_lines)
        case _:
            return


def describe_box(box: Box) -> str:
    """A box in parts of the frame."""
    whole = ", nearly the whole frame" if box.area >= _WHOLE else ""
    return (
        f"{box.x0:.0%} to {box.x1:.0%} across, {box.y0:.0%} to {box.y1:.0%} down"
        f" ({box.area:.0%} of the frame{whole})"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far several reviewers agree under one instrument: counts, not rates."""

    protocol: str
    said: Mapping[str, int]
    """How many gave each label or score."""
    n_silent: int
    """Reviewers without a verdict."""
    overlaps: tuple[float, ...]
    """Intersection over union of each two boxes."""
    apart_us: tuple[int, ...]
    """Distance of each two onsets."""

    def __str__(self) -> str:
        asked = sum(self.said.values()) + self.n_silent
        said = [*self.said.items(), *([("no verdict", self.n_silent)] if self.n_silent else [])]
        counts = ", ".join(f"{what} by {n} of {asked}" for what, n in said)
        boxes = f"; boxes overlap {_range(self.overlaps)}" if self.overlaps else ""
        times = [apart / MICROSECONDS for apart in self.apart_us]
        onsets = f"; onsets lie {_range(times)} s apart" if times else ""
        return f"{self.protocol}: {counts}{boxes}{onsets}"


def agreements(opinions: Sequence[Opinion]) -> list[Agreement]:
    """How far they agree under each instrument; nothing where there is one reviewer."""
    if len({opinion.reviewer for opinion in opinions}) == 1:
        return []
    asked = dict.fromkeys(opinion.question.instrument.protocol for opinion in opinions)
    return [agreement(opinions, name) for name in asked]


def agreement(opinions: Sequence[Opinion], protocol: str) -> Agreement:
    """What the opinions under `protocol` have in common."""
    same = [one for one in opinions if one.question.instrument.protocol == protocol]
    told = [one.verdict for one in same if one.verdict is not None and one.is_readable]
    traces = [v for v in told if isinstance(v, TraceVerdict) and v.label is Label.GENERATED]
    boxes = [trace.box for trace in traces if isinstance(trace.box, Box)]
    starts = [trace.start_us for trace in traces if isinstance(trace.start_us, int)]
    said = Counter(headline(one) for one in same if one.is_readable)
    return Agreement(
        protocol=protocol,
        said=dict(said.most_common()),
        n_silent=len(same) - len(told),
        overlaps=tuple(one.iou(other) for one, other in combinations(boxes, 2)),
        apart_us=tuple(abs(one - other) for one, other in combinations(starts, 2)),
    )


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def _or_missing(part: Part | Unparsed, write: Callable[[Part], str]) -> str:
    if not isinstance(part, Unparsed):
        return write(part)
    found = f": {plain(part.found)!r}" if part.found else ""
    return f"not given ({part.reason.value}{found})"
