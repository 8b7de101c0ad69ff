"""Reward of one answer, from 0 to 1, by its verdict and the ground truth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, assert_never

from unreel.core.clip import Real
from unreel.core.judgement import Label
from unreel.core.verdict import (
    LocateVerdict,
    PreferenceVerdict,
    RealismVerdict,
    RealityVerdict,
    TraceVerdict,
    Unparsed,
    Verdict,
)
from unreel.protocols.trace.ground_truth import TraceTruth
from unreel.protocols.trace.prompts import asks_onset_time
from unreel.training.rewards.reward_settings import (
    AnswerRewardSettings,
    compute_box_closeness,
    compute_onset_closeness,
    compute_span_closeness,
    has_malformed_evidence,
    is_malformed_answer_part,
)

_WIDEST: Final = 4
"""Maximum difference of two scores on the scale of `realism`."""


@dataclass(frozen=True, slots=True)
class AnswerReward:
    """Reward of one answer, with the values of its parts (label, box, onset, format) before weighting."""

    total: float
    """Reward from 0 to 1."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Value of each part: `label` and `format` from 0 to 1; `box`, `onset` and `span` are negative if worse than no
    evidence. Parts that the ground truth lacks are absent."""


NOTHING: Final = AnswerReward(0.0)


def compute_answer_reward(
    verdict: Verdict, truths: Sequence[Any], terms: AnswerRewardSettings, *, prompt: str
) -> AnswerReward:
    """Return the highest reward of the answer `verdict` over the ground truths of its question.

    An answer that cannot be parsed has a reward of 0, and so has a real clip that is called
    generated. A generated clip that is called real loses `false_alarm` times less. A correct label
    without evidence has the same reward on real and generated clips. Evidence on generated clips
    raises the reward if it is closer to the truth than the best constant answer, and lowers it
    otherwise. Both are linear in the closeness, so that constant evidence changes nothing on average.
    Explanations are not scored.
    """
    return max(
        (_compute_reward_for_truth(verdict, truth, terms, prompt) for truth in truths),
        key=lambda r: r.total,
    )


def _compute_reward_for_truth(
    verdict: Verdict, truth: Any, terms: AnswerRewardSettings, prompt: str
) -> AnswerReward:
    match verdict:
        case TraceVerdict():
            return _compute_trace_reward(verdict, truth, terms, prompt)
        case RealismVerdict():
            return _compute_realism_reward(verdict, truth.score, terms)
        case RealityVerdict():
            label = Label.REAL if isinstance(truth, Real) else Label.GENERATED
            formed = not is_malformed_answer_part(verdict.confidence)
            return _compute_label_reward(
                verdict.label, label, [("format", terms.format, formed)], terms
            )
        case LocateVerdict():
            return _compute_label_reward(
                verdict.label, truth.label, [("format", terms.format, True)], terms
            )
        case PreferenceVerdict():
            return AnswerReward(1.0, {"label": 1.0}) if verdict.real is truth else NOTHING
        case _:
            assert_never(verdict)


def _compute_trace_reward(
    verdict: TraceVerdict, truth: TraceTruth, terms: AnswerRewardSettings, prompt: str
) -> AnswerReward:
    takes_back = verdict.label is Label.REAL and not isinstance(verdict.box, Unparsed)
    formed = not has_malformed_evidence(verdict) and not takes_back
    parts = [("format", terms.format, float(formed))]
    if truth.box is not None:
        closeness = compute_box_closeness(verdict.box, truth)
        parts.append(("box", terms.box, _scale_closeness_above_bar(closeness, terms.box_bar)))
    evidence = terms.box + (terms.onset + terms.span if asks_onset_time(prompt) else 0.0)
    if truth.start_us is not None and asks_onset_time(prompt):
        closeness = compute_onset_closeness(verdict.start_us, truth, within=terms.onset_within)
        parts.append(("onset", terms.onset, _scale_closeness_above_bar(closeness, terms.onset_bar)))
        closeness = compute_span_closeness(verdict.start_us, truth)
        parts.append(("span", terms.span, _scale_closeness_above_bar(closeness, terms.span_bar)))
    return _compute_label_reward(verdict.label, truth.label, parts, terms, evidence=evidence)


def _scale_closeness_above_bar(closeness: float | None, bar: float) -> float:
    """Scale the difference between a closeness and the bar to -1 to 1; 0 if the closeness is unknown."""
    return 0.0 if closeness is None else (closeness - bar) / max(bar, 1 - bar)


def _compute_label_reward(
    label: Label | Unparsed,
    true: Label,
    others: Sequence[tuple[str, float, float]],
    terms: AnswerRewardSettings,
    *,
    evidence: float = 0.0,
) -> AnswerReward:
    """Return the reward of a label with the other reward parts `others`.

    Args:
        label: Label of the answer.
        true: True label.
        others: Name, weight and value of each other part.
        terms: Settings of the reward.
        evidence: Total weight of the evidence that the question asks for.
    """
    if isinstance(label, Unparsed):
        return NOTHING
    scale = terms.real_scale if true is Label.REAL else terms.generated_scale
    if label is not true:
        missed = label is Label.REAL
        return (
            AnswerReward(scale * (1 - 1 / terms.false_alarm), {"label": 0.0}) if missed else NOTHING
        )
    base = terms.label + terms.format
    steepness = min(1.0, base / evidence) if evidence else 1.0  # so that no reward falls below 0
    earned = terms.label + sum(
        weight * part * (1 if name == "format" else steepness) for name, weight, part in others
    )
    worth = min(1.0, max(0.0, earned / (base + evidence)))
    parts = {"label": 1.0, **{name: part for name, _, part in others}}
    return AnswerReward(scale * (1 - (1 - worth) / terms.false_alarm), parts)


def _compute_realism_reward(
    verdict: RealismVerdict, true: int, terms: AnswerRewardSettings
) -> AnswerReward:
    if isinstance(verdict.score, Unparsed):
        return NOTHING
    closeness = 1 - abs(verdict.score - true) / _WIDEST
    formed = float(not is_malformed_answer_part(verdict.family))
    total = (terms.label * closeness + terms.format * formed) / (terms.label + terms.format)
    return AnswerReward(total, {"label": closeness, "format": formed})
