"""Passport of false alarms: what reviewers say about real footage of a user's own.

A label gives the false-alarm rate with the interval of Clopper and Pearson. A score gives a conformal
p-value: (1 + number of real clips that look at least as odd) / (n + 1), which is valid if the new clip,
were it real, came from the same footage.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, MaxLen
from pydantic import TypeAdapter, ValidationError

from unreel.core.clip import Clip
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.input_files import parse_json_object, read_limited_bytes
from unreel.core.judgement import Label
from unreel.core.question import Condition, Instrument
from unreel.core.span import convert_to_microseconds, format_seconds
from unreel.core.verdict import RealismVerdict, RealityVerdict, Unparsed, Verdict
from unreel.evaluation.opinion import Opinion
from unreel.protocols.protocol import Mode
from unreel.stats.proportion import clopper_pearson_interval

FORMAT = "unreel passport 1"
MIN_CLIPS = 30
"""Minimum number of clips of one kind for a statement about this kind alone."""
PREVALENCE = 0.01
"""Assumed share of generated clips among those that reach the user."""
_MAX_BYTES = 64_000_000
_BEST_REALISM = 5
_SIZES = (480, 720, 1080)


@dataclass(frozen=True, slots=True, kw_only=True)
class FootageCell:
    """Real clips of one codec, size and source, with what a reviewer said about them."""

    codec: str
    size: str
    """Class of the shorter side of the picture, for example "720 to 1079"."""
    source: str
    n: Annotated[int, Ge(0)]
    """Number of clips with a readable answer."""
    n_alarms: Annotated[int, Ge(0)]
    """Number of clips that the reviewer calls generated; 0 for a protocol without labels."""
    oddness: Annotated[tuple[float, ...], MaxLen(10_000_000)]
    """How odd each clip looks to the reviewer, ascending; empty for an answer without a score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerPassport:
    """Answers of one reviewer under one condition to one protocol about all real clips."""

    reviewer: str
    instrument: str
    condition: dict[str, str | int | None]
    parser: Literal["strict", "lenient"]
    has_label: bool
    n_unanswered: Annotated[int, Ge(0)]
    """Number of clips with a failure or an unreadable answer, which count nowhere else."""
    cells: tuple[FootageCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FalseAlarmPassport:
    """Footage of a user, and what reviewers say about it."""

    archive: str
    made_at: str
    n_clips: Annotated[int, Ge(0)]
    n_repeated: Annotated[int, Ge(0)]
    """Number of files with the same bytes as an earlier one, which count once."""
    codecs: tuple[str, ...]
    shorter_sides: tuple[int, int]
    """Smallest and largest length of the shorter side of the picture, in pixels."""
    durations_us: tuple[int, int]
    """Shortest and longest duration."""
    reviewers: tuple[ReviewerPassport, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FalseAlarmStatement:
    """What a passport says about one opinion."""

    kind: Literal["outside", "unknown", "measured"]
    text: str
    n: int = 0
    n_alarms: int | None = None
    p_value: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON for the result of a review."""
        return asdict(self)


def measure_oddness(verdict: Verdict | None) -> float | None:
    """Return the score of a verdict, higher for a clip that looks more generated; `None` without one."""
    if isinstance(verdict, RealityVerdict):
        return verdict.p_generated
    if isinstance(verdict, RealismVerdict) and not isinstance(verdict.score, Unparsed):
        return float(_BEST_REALISM - verdict.score)
    return None


def write_passport(passport: FalseAlarmPassport) -> bytes:
    """Return the JSON document of a passport."""
    return json.dumps({"format": FORMAT, **asdict(passport)}, ensure_ascii=False).encode()


def read_passport(path: Path) -> FalseAlarmPassport:
    """Read a passport; raise `UnreadableSourceError` if the file is not one."""
    remedy = "Name a file that `unreel calibrate` wrote"
    try:
        document = dict(parse_json_object(read_limited_bytes(path, most=_MAX_BYTES, remedy=remedy)))
        if document.pop("format", None) != FORMAT:
            raise UnreadableSourceError(str(path), f"its format is not {FORMAT!r}", remedy)
        return TypeAdapter(FalseAlarmPassport).validate_python(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UnreadableSourceError(str(path), f"{place}: {first['msg']}", remedy) from error
    except InvalidValueError as error:
        raise UnreadableSourceError(str(path), str(error), remedy) from error


def judge_opinion(
    opinion: Opinion, clip: Clip, passport: FalseAlarmPassport, *, mode: Mode
) -> FalseAlarmStatement | None:
    """Compare an opinion about `clip` with those about real footage; `None` for an opinion without a verdict."""
    if not opinion.is_readable:
        return None
    question = opinion.question
    measured = find_reviewer_passport(
        passport, opinion.reviewer, question.instrument, question.condition, mode=mode
    )
    if measured is None:
        known = sorted({each.reviewer for each in passport.reviewers})
        text = f"The passport of {passport.archive} does not contain this question to this reviewer; it has {', '.join(known)}."
        return FalseAlarmStatement(kind="unknown", text=text)
    if differences := list_differences(clip, passport):
        text = f"Not judged: the clip is unlike your footage in {passport.archive} ({'; '.join(differences)})."
        return FalseAlarmStatement(kind="outside", text=text)
    cells, kind_note = _choose_cells(measured, clip)
    n = sum(cell.n for cell in cells)
    sentences = []
    n_alarms = p_value = None
    if measured.has_label:
        n_alarms = sum(cell.n_alarms for cell in cells)
        low, high = clopper_pearson_interval(n_alarms, n, level=0.95)
        sentences.append(
            f"Of {n} of your own real clips, it calls {n_alarms} generated "
            f"({100 * n_alarms / n:.1f} %, 95 % interval {100 * low:.1f} to {100 * high:.1f})."
        )
        if opinion.decision is Label.GENERATED:
            sentences.append(_format_predictive_value((n_alarms + 1) / (n + 1)))
    oddness = measure_oddness(opinion.verdict)
    scores = [score for cell in cells for score in cell.oddness]
    if oddness is not None and scores:
        n_as_odd = sum(score >= oddness for score in scores)
        p_value = (n_as_odd + 1) / (len(scores) + 1)
        sentences.append(
            f"{n_as_odd} of {len(scores)} of your own real clips look at least this odd to it "
            f"(p = {p_value:.2g})."
        )
    sentences.extend(kind_note)
    return FalseAlarmStatement(
        kind="measured", text=" ".join(sentences), n=n, n_alarms=n_alarms, p_value=p_value
    )


def find_reviewer_passport(
    passport: FalseAlarmPassport,
    reviewer: str,
    instrument: Instrument,
    condition: Condition,
    *,
    mode: Mode,
) -> ReviewerPassport | None:
    """Return the answers to the same question, read by the same parser; `None` if there are none."""
    key = (reviewer, str(instrument), condition.written(), mode)
    for measured in passport.reviewers:
        if (measured.reviewer, measured.instrument, measured.condition, measured.parser) == key:
            return measured
    return None


def list_differences(clip: Clip, passport: FalseAlarmPassport) -> list[str]:
    """Return in which respects `clip` is outside the footage of `passport`; empty if it is inside."""
    codec, side, duration_us = clip.facts.video.codec, min(clip.size), get_duration_us(clip)
    differences = []
    if codec not in passport.codecs:
        differences.append(f"codec {codec}, footage {', '.join(passport.codecs)}")
    shortest, longest = passport.shorter_sides
    if not shortest <= side <= longest:
        differences.append(f"shorter side {side}, footage {shortest} to {longest} pixels")
    briefest, lengthiest = passport.durations_us
    if not briefest <= duration_us <= lengthiest:
        lengths = f"{format_seconds(briefest)} to {format_seconds(lengthiest)}"
        differences.append(f"duration {format_seconds(duration_us)}, footage {lengths}")
    return differences


def iter_strata(measured: ReviewerPassport) -> Iterator[tuple[str, str, int, int]]:
    """Yield each stratum: its property, value, number of clips and number of alarms."""
    for name in ("codec", "size", "source"):
        totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for cell in measured.cells:
            totals[getattr(cell, name)][0] += cell.n
            totals[getattr(cell, name)][1] += cell.n_alarms
        if totals.keys() == {""}:
            continue  # the archive names no sources
        for value, (n, n_alarms) in sorted(totals.items()):
            yield name, value, n, n_alarms


def _choose_cells(measured: ReviewerPassport, clip: Clip) -> tuple[list[FootageCell], list[str]]:
    """Return the cells of the clip's kind, or all if they have too few clips, and a note about that."""
    kind = (clip.facts.video.codec, get_size_class(clip))
    alike = [cell for cell in measured.cells if (cell.codec, cell.size) == kind]
    n = sum(cell.n for cell in alike)
    if n >= MIN_CLIPS:
        return alike, []
    note = f"Only {n} of them have this codec and size ({kind[0]}, {kind[1]}), too few for a statement about this kind."
    return list(measured.cells), [note]


def _format_predictive_value(false_alarm_rate: float) -> str:
    """Return the share of right alarms, if the reviewer finds every generated clip, as a sentence."""
    right = PREVALENCE / (PREVALENCE + (1 - PREVALENCE) * false_alarm_rate)
    tenths = round(10 * right)
    share = f"about {tenths} of 10" if tenths else "fewer than 1 of 10"
    return (
        f"If 1 in 100 clips that reach you is generated and it finds every one of them, {share} "
        "such alarms are right."
    )


def get_size_class(clip: Clip) -> str:
    """Return the class of the shorter side of a clip's picture."""
    side = min(clip.size)
    if side < _SIZES[0]:
        return f"under {_SIZES[0]}"
    for lower, upper in pairwise(_SIZES):
        if side < upper:
            return f"{lower} to {upper - 1}"
    return f"{_SIZES[-1]} or more"


def get_duration_us(clip: Clip) -> int:
    """Return the duration of a clip's picture in microseconds."""
    return convert_to_microseconds(clip.facts.video.duration_s)
