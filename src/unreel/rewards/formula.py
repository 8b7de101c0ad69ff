"""Formula `reward@1`: computes the reward of a clip from its verdicts (docs/decisions/0047)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from statistics import fmean

from unreel.core.box import Box
from unreel.core.clip import Clip
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label
from unreel.core.span import convert_to_microseconds
from unreel.core.trace import Trace
from unreel.core.verdict import (
    LocateVerdict,
    RealismVerdict,
    RealityVerdict,
    TraceVerdict,
    Unparsed,
    Verdict,
)
from unreel.protocols.locate import LOCATE
from unreel.protocols.trace import TRACE
from unreel.rewards.result import ReviewerVerdict, Reward, RewardMap, RewardMapTrace

WEIGHTS: Mapping[str, float] = {"real_probability": 2, "realism": 1, "traced_volume": 1}
"""Weights of the parts in the value; `agreement` is reported but has no weight."""
_LOWEST, _HIGHEST = 1, 5
_FRAME = Box(0, 0, 1, 1)
_MAPPED = frozenset(known.instrument.protocol for known in (TRACE, LOCATE))
"""Protocols whose answers contain traces in space and time."""
Calibrators = Mapping[tuple[str, str], Callable[[float], float]]
"""Functions from a stated to a corrected probability of real, by reviewer and protocol."""


def compute_reward(
    verdicts: Sequence[ReviewerVerdict], clip: Clip, calibrators: Calibrators
) -> Reward:
    """Return the reward from all `verdicts`; `None` as value if one failed, since it is not comparable."""
    failure = next(iter(_iter_verdict_failures(verdicts)), None)
    parts, duration_us = {}, convert_to_microseconds(clip.facts.video.duration_s)
    labels = [(v, p) for v in verdicts if (p := get_real_probability(v.outcome)) is not None]
    if labels:
        parts["real_probability"] = fmean(
            calibrators[key](p) if (key := (v.reviewer, v.protocol)) in calibrators else p
            for v, p in labels
        )
    scores = [(v, s) for v in verdicts if (s := _compute_realism_part(v.outcome)) is not None]
    if scores:
        parts["realism"] = fmean(score for _, score in scores)
    reward_map = _build_reward_map(verdicts, clip, duration_us)
    if reward_map is not None and reward_map.traces:
        parts["traced_volume"] = fmean(
            _compute_covered_fraction(t, duration_us) for t in reward_map.traces
        )
    pairs = [
        1 - abs(p - q)
        for (a, p), (b, q) in combinations([*labels, *scores], 2)
        if a.protocol == b.protocol and a.reviewer != b.reviewer
    ]
    if pairs:
        parts["agreement"] = fmean(pairs)
    calibrated = bool(labels) and all((v.reviewer, v.protocol) in calibrators for v, _ in labels)
    return Reward(
        value=None if failure else combine_reward_parts(parts),
        failure=failure,
        parts=parts,
        verdicts=tuple(verdicts),
        calibrated=calibrated and failure is None,
        map=reward_map,
    )


def combine_reward_parts(parts: Mapping[str, float]) -> float:
    """Return the weighted mean of the measured parts of a reward; 1 means that the clip looks real."""
    weighted = [
        (weight, 1 - parts[name] if name == "traced_volume" else parts[name])
        for name, weight in WEIGHTS.items()
        if name in parts
    ]
    mean = sum(weight * part for weight, part in weighted) / sum(weight for weight, _ in weighted)
    return min(1.0, max(0.0, mean))


def get_real_probability(outcome: Verdict | Failure) -> float | None:
    """Return a verdict's probability of real, 0 or 1 for a mere label; `None` if it states none."""
    match outcome:
        case RealityVerdict(confidence=float()):
            stated = outcome.p_generated
            return None if stated is None else 1 - stated
        case (
            RealityVerdict(label=Label() as label, confidence=None)
            | TraceVerdict(label=Label() as label)
            | LocateVerdict(label=Label() as label)
        ):
            return float(label is Label.REAL)
        case _:
            return None


def _compute_realism_part(outcome: Verdict | Failure) -> float | None:
    if not isinstance(outcome, RealismVerdict) or isinstance(outcome.score, Unparsed):
        return None
    return (outcome.score - _LOWEST) / (_HIGHEST - _LOWEST)


def _build_reward_map(
    verdicts: Iterable[ReviewerVerdict], clip: Clip, duration_us: int
) -> RewardMap | None:
    """Build the map of all traces; `None` without `trace` questions or with an unreadable answer."""
    traces: list[RewardMapTrace | None] = []
    tubes: list[tuple[RewardMapTrace, ...]] = []
    for verdict in verdicts:
        match verdict.outcome:
            case TraceVerdict(label=Label.REAL):
                traces.append(None)
            case TraceVerdict(label=Label(), box=Box() as box, start_us=int() as start_us):
                traces.append(RewardMapTrace(box, start_us))
            case LocateVerdict(segments=tuple() as segments):
                tubes.append(
                    tuple(box for segment in segments for box in _iter_tube(segment.trace))
                )
            case _ if verdict.protocol in _MAPPED:
                return None
            case _:
                pass
    width, height = clip.size
    if not (traces or tubes) or duration_us <= 0:
        return None
    return RewardMap(
        traces=tuple(traces),
        duration_us=duration_us,
        width=width,
        height=height,
        tubes=tuple(tubes),
    )


def _iter_tube(trace: Trace) -> Iterator[RewardMapTrace]:
    """Yield each box of a segment until the next one; the whole frame for a segment without boxes."""
    if not trace.track:
        yield RewardMapTrace(_FRAME, trace.span.start_us, trace.span.end_us)
    starts = [trace.span.start_us, *(mark.at_us for mark in trace.track[1:]), trace.span.end_us]
    for mark, (start_us, end_us) in zip(trace.track, pairwise(starts), strict=False):
        yield RewardMapTrace(mark.box, start_us, end_us)


def _compute_covered_fraction(trace: RewardMapTrace | None, duration_us: int) -> float:
    """Return the fraction of the clip's area x time that the trace covers; 0 without a trace."""
    if trace is None:
        return 0.0
    return trace.box.area * max(0.0, 1 - trace.start_us / duration_us)


def _iter_verdict_failures(verdicts: Iterable[ReviewerVerdict]) -> Iterator[Failure]:
    for verdict in verdicts:
        subject = f"{verdict.reviewer}, {verdict.protocol}"
        if isinstance(verdict.outcome, Failure):
            failure = verdict.outcome
            yield Failure(failure.reason, f"{subject}: {failure.detail}")
        elif missing := _find_unparsed_part(verdict.outcome):
            yield Failure(FailureReason.MALFORMED_REPLY, f"{subject}: cannot read {missing}")


def _find_unparsed_part(verdict: Verdict) -> str:
    """Return the name of the first part that the formula needs and the verdict lacks; "" if none."""
    needed: dict[str, object]
    match verdict:
        case TraceVerdict(label=Label.REAL):
            needed = {}
        case TraceVerdict(label=label, box=box, start_us=start_us):
            needed = {"the label": label, "the box": box, "the start time": start_us}
        case RealismVerdict():
            needed = {"the score": verdict.score}
        case RealityVerdict():
            needed = {"the label": verdict.label, "the confidence": verdict.confidence}
        case LocateVerdict():
            needed = {"the segments": verdict.segments}
        case _:
            needed = {"the choice": verdict.real}
    return next((name for name, part in needed.items() if isinstance(part, Unparsed)), "")
