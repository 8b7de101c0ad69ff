"""Reward of one answer, from 0 to 1, by its verdict and the ground truth; answer keys as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

from unreel.benchmarks.export.exported_question import format_truths_json, parse_truths_json
from unreel.core.clip import Real
from unreel.core.input_files import parse_json
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
from unreel.protocols.box_space import BoxSpace, parse_box_space
from unreel.protocols.protocol import AnswerContext, get_protocol
from unreel.protocols.trace.prompts import asks_onset_time
from unreel.recipes.validation import Count, RecipeSection, Text, validate_recipe_sections
from unreel.reviewers.contract import ReviewRequest
from unreel.training.examples.example import TrainingExample, TrainingExampleInput
from unreel.training.rewards.reward_settings import (
    AnswerRewardSettings,
    compute_box_closeness,
    compute_onset_closeness,
    compute_span_closeness,
    has_malformed_evidence,
    is_malformed_answer_part,
)

_WIDEST = 4
"""Maximum difference of two scores on the scale of `realism`."""


@dataclass(frozen=True, slots=True)
class AnswerReward:
    """Reward of one answer, with the values of its parts (label, box, onset, format) before weighting."""

    total: float
    """Reward from 0 to 1."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Value of each part: `label` and `format` from 0 to 1; `box`, `onset` and `span` are negative if worse than no
    evidence. Parts that the ground truth lacks are absent."""


NOTHING = AnswerReward(0.0)


def compute_answer_reward(
    verdict: Verdict, truths: Sequence[Any], settings: AnswerRewardSettings, *, prompt: str
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
        (_compute_reward_for_truth(verdict, truth, settings, prompt) for truth in truths),
        key=lambda r: r.total,
    )


def _compute_reward_for_truth(
    verdict: Verdict, truth: Any, settings: AnswerRewardSettings, prompt: str
) -> AnswerReward:
    match verdict:
        case TraceVerdict():
            takes_back = verdict.label is Label.REAL and not isinstance(verdict.box, Unparsed)
            formed = not has_malformed_evidence(verdict) and not takes_back
            parts = [("format", settings.format, float(formed))]
            evidence = settings.box
            if truth.box is not None:
                closeness = compute_box_closeness(verdict.box, truth)
                value = _scale_closeness_above_bar(closeness, settings.box_bar)
                parts.append(("box", settings.box, value))
            if asks_onset_time(prompt):
                evidence += settings.onset + settings.span
                if truth.start_us is not None:
                    start_us, within = verdict.start_us, settings.onset_within
                    closeness = compute_onset_closeness(start_us, truth, within=within)
                    value = _scale_closeness_above_bar(closeness, settings.onset_bar)
                    parts.append(("onset", settings.onset, value))
                    closeness = compute_span_closeness(start_us, truth)
                    value = _scale_closeness_above_bar(closeness, settings.span_bar)
                    parts.append(("span", settings.span, value))
            return _compute_label_reward(
                verdict.label, truth.label, parts, settings, evidence=evidence
            )
        case RealismVerdict():
            if isinstance(verdict.score, Unparsed):
                return NOTHING
            closeness = 1 - abs(verdict.score - truth.score) / _WIDEST
            form = float(not is_malformed_answer_part(verdict.family))
            earned = settings.label * closeness + settings.format * form
            total = earned / (settings.label + settings.format)
            return AnswerReward(total, {"label": closeness, "format": form})
        case RealityVerdict():
            label = Label.REAL if isinstance(truth, Real) else Label.GENERATED
            formed = not is_malformed_answer_part(verdict.confidence)
            return _compute_label_reward(
                verdict.label, label, [("format", settings.format, formed)], settings
            )
        case LocateVerdict():
            return _compute_label_reward(
                verdict.label, truth.label, [("format", settings.format, True)], settings
            )
        case PreferenceVerdict():
            return AnswerReward(1.0, {"label": 1.0}) if verdict.real is truth else NOTHING
        case _:
            assert_never(verdict)


def _scale_closeness_above_bar(closeness: float | None, bar: float) -> float:
    """Scale the difference between a closeness and the bar to -1 to 1; 0 if the closeness is unknown."""
    return 0.0 if closeness is None else (closeness - bar) / max(bar, 1 - bar)


def _compute_label_reward(
    label: Label | Unparsed,
    true_label: Label,
    others: Sequence[tuple[str, float, float]],
    settings: AnswerRewardSettings,
    *,
    evidence: float = 0.0,
) -> AnswerReward:
    """Return the reward of a label with the other reward parts `others`."""
    if isinstance(label, Unparsed):
        return NOTHING
    scale = settings.real_scale if true_label is Label.REAL else settings.generated_scale
    if label is not true_label:
        if label is not Label.REAL:
            return NOTHING
        return AnswerReward(scale * (1 - 1 / settings.false_alarm), {"label": 0.0})
    base = settings.label + settings.format
    steepness = min(1.0, base / evidence) if evidence else 1.0  # so that no reward falls below 0
    earned = settings.label + sum(
        weight * part * (1 if name == "format" else steepness) for name, weight, part in others
    )
    worth = min(1.0, max(0.0, earned / (base + evidence)))
    parts = {"label": 1.0, **{name: part for name, _, part in others}}
    return AnswerReward(scale * (1 - (1 - worth) / settings.false_alarm), parts)


LONGEST = 20_000
"""Maximum number of characters of an answer. A longer answer gets no reward, because parsing it would delay the
training."""


class _BoxSpaceJson(RecipeSection):
    name: Text
    width: Count
    height: Count


class _AnswerKeyJson(RecipeSection):
    protocol: Text
    prompt: Text
    space: _BoxSpaceJson | None
    truths: str
    terms: AnswerRewardSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKey:
    """Ground truth and settings that determine the rewards of all answers to one question."""

    protocol: str
    prompt: str
    """Name of the prompt variant of the question."""
    space: BoxSpace | None
    """Coordinate space of the boxes; `None` for a protocol without boxes."""
    truths: tuple[Any, ...]
    terms: AnswerRewardSettings

    def mark(self, text: str) -> AnswerReward:
        """Return the reward of the answer `text` by the strict parser; 0, without exception, if unparsable."""
        if len(text) > LONGEST:
            return NOTHING
        reading = AnswerContext(mode="strict", prompt=self.prompt, space=self.space)
        verdict = get_protocol(self.protocol).parse(text, reading)
        return compute_answer_reward(verdict, self.truths, self.terms, prompt=self.prompt)

    def write(self) -> str:
        space = self.space
        return _AnswerKeyJson(
            protocol=self.protocol,
            prompt=self.prompt,
            space=_BoxSpaceJson(name=space.name, width=space.width, height=space.height)
            if space
            else None,
            truths=format_truths_json(self.protocol, self.truths),
            terms=self.terms,
        ).model_dump_json()


def parse_answer_key(text: str) -> AnswerKey:
    """Parse the JSON of `AnswerKey.write`; raise `InvalidSettingError` if it is another text."""
    written = validate_recipe_sections(_AnswerKeyJson, parse_json(text.encode()))
    space = written.space
    return AnswerKey(
        protocol=written.protocol,
        prompt=written.prompt,
        space=BoxSpace(space.name, space.width, space.height) if space else None,
        truths=parse_truths_json(written.protocol, written.truths),
        terms=written.terms,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptWithAnswerKey:
    """A question as model input, with the answer key that computes the rewards of its answers."""

    request: ReviewRequest
    key: AnswerKey


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionWithTruths:
    """A question with all its ground truths; an answer is rewarded by the best-matching one."""

    example: TrainingExample
    """Example of the question's first annotation row."""
    truths: tuple[Any, ...]

    @property
    def called(self) -> str:
        """Return the label of the question's first ground truth, as one word."""
        return get_protocol(self.example.question.instrument.protocol).wording.right(self.truths[0])

    def key(self, example: TrainingExampleInput, settings: AnswerRewardSettings) -> AnswerKey:
        """Return the answer key of the question, from its model input `example` and the settings `settings`."""
        question, space = self.example.question, None
        if example.box_space is not None:
            width, height = self.example.clips[0].size
            space = parse_box_space(example.box_space, width=width, height=height)
        return AnswerKey(
            protocol=question.instrument.protocol,
            prompt=question.condition.prompt,
            space=space,
            truths=self.truths,
            terms=settings,
        )


def group_examples_by_question(examples: Sequence[TrainingExample]) -> list[QuestionWithTruths]:
    """Group `examples` by their question, in order; a clip with several rows gives one question."""
    rows: dict[Any, list[TrainingExample]] = {}
    for example in examples:
        rows.setdefault(example.question, []).append(example)
    return [
        QuestionWithTruths(example=same[0], truths=tuple(row.truth for row in same))
        for same in rows.values()
    ]
