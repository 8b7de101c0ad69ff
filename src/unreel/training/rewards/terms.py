"""Weights of the parts of an answer, fixed for the ground truth of a training set."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import Field

from unreel.core.clip import Generated, Real
from unreel.core.judgement import Label
from unreel.protocols.trace.truth import TraceTruth
from unreel.recipes.section import RecipeSection
from unreel.training.recipe import RewardSection, Share
from unreel.training.rewards.constants import ConstantScores, constant_bars

Bar = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]

_SHARED: Final = ("label", "box", "onset", "span", "format", "false_alarm", "onset_within")


class RewardTerms(RecipeSection):
    """All settings of a reward except the ground truth; stored as JSON with every truth."""

    label: Share
    box: Share
    onset: Share
    span: Share
    format: Share
    false_alarm: Annotated[float, Field(ge=1, le=100)]
    onset_within: Annotated[float, Field(gt=0, le=1)]
    box_bar: Bar
    """IoU with a reward of zero: higher ones are rewarded, lower ones penalised."""
    onset_bar: Bar
    span_bar: Bar
    real_scale: Share = 1.0
    """Factor of all rewards on real clips: below 1 if they are the majority."""
    generated_scale: Share = 1.0


def compute_reward_terms(section: RewardSection, questions: Sequence[Sequence[Any]]) -> RewardTerms:
    """Compute the terms of `[reward]` for `questions`, each given by its truths.

    Without `bar` in the section, the bars are the scores of the best constant answer to these
    questions. The scales give both labels equal weight. So no answer that ignores the clip has a
    higher reward than another such answer.
    """
    if section.bar is not None:
        bars = ConstantScores(box=section.bar, onset=section.bar, span=section.bar)
    else:
        traced = [[t for t in truths if isinstance(t, TraceTruth)] for truths in questions]
        bars = constant_bars(traced, onset_within=section.onset_within)
    real_scale, generated_scale = _label_scales(questions)
    return RewardTerms(
        **{name: getattr(section, name) for name in _SHARED},
        box_bar=bars.box,
        onset_bar=bars.onset,
        span_bar=bars.span,
        real_scale=real_scale,
        generated_scale=generated_scale,
    )


def _label_scales(questions: Sequence[Sequence[Any]]) -> tuple[float, float]:
    labels = [_find_label(truths[0]) for truths in questions if truths]
    n_real, n_generated = labels.count(Label.REAL), labels.count(Label.GENERATED)
    fewest = min(n_real, n_generated)
    return (fewest / n_real, fewest / n_generated) if fewest else (1.0, 1.0)


def _find_label(truth: Any) -> Label | None:
    match truth:
        case TraceTruth():
            return truth.label
        case Real():
            return Label.REAL
        case Generated():
            return Label.GENERATED
        case _:
            return None
