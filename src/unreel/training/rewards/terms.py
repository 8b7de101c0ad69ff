"""Weights of the parts of an answer, fixed for the ground truth of a training set."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import Field

from unreel.protocols.trace.truth import TraceTruth
from unreel.recipes.section import RecipeSection
from unreel.training.recipe import RewardSection, Share
from unreel.training.rewards.constants import HIGHEST_BAR, ConstantScores, constant_bars

Bar = Annotated[float, Field(ge=0, le=HIGHEST_BAR, allow_inf_nan=False)]

_SHARED: Final = ("label", "box", "onset", "span", "format", "false_alarm", "onset_within")


class RewardTerms(RecipeSection):
    """All that decides what an answer earns besides the truth; it travels with every truth as JSON."""

    label: Share
    box: Share
    onset: Share
    span: Share
    format: Share
    false_alarm: Annotated[float, Field(ge=1, le=100)]
    onset_within: Annotated[float, Field(gt=0, le=1)]
    box_bar: Bar
    """IoU that costs and earns nothing: what lies above it is paid, what lies below it costs."""
    onset_bar: Bar
    span_bar: Bar


def settle(section: RewardSection, questions: Sequence[Sequence[Any]]) -> RewardTerms:
    """The terms of `[reward]` for these questions, each with its truths.

    Where the section names no bar, evidence is paid from what the best constant answer reaches on them, so
    that no answer is worth giving that could be given without looking.
    """
    if section.bar is not None:
        bars = ConstantScores(box=section.bar, onset=section.bar, span=section.bar)
    else:
        traced = [[t for t in truths if isinstance(t, TraceTruth)] for truths in questions]
        bars = constant_bars(traced, onset_within=section.onset_within)
    return RewardTerms(
        **{name: getattr(section, name) for name in _SHARED},
        box_bar=bars.box,
        onset_bar=bars.onset,
        span_bar=bars.span,
    )
