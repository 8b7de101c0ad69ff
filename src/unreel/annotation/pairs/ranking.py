"""Clips in the order of people's comparisons, or of one question's answers turned into comparisons.

One person's answers to one question say which of two clips is stronger where they pass one and
fail the other: given that exactly one passes, Rasch's model is Bradley and Terry's (Rasch 1960;
Zwinderman 1995, doi:10.1177/014662169501900406), and the annotator's own strictness falls out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from unreel.annotation.campaign_state import AnnotatorJudgement
from unreel.annotation.judgements import PassFailAnswer, PreferenceAnswer
from unreel.annotation.pairs.plan import estimate_strengths
from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.verdict import Position
from unreel.stats.bootstrap import bootstrap_mean
from unreel.stats.pair_choice import MOST, StrengthPosterior
from unreel.stats.proportion import estimate_proportion, normal_quantile
from unreel.stats.ranking import BattleOutcome, ClipBattle, bradley_terry

_MOST: Final = 1_000_000
"""Pairs of answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedClip:
    """One clip's place."""

    place: int
    """Rank from 1, by posterior strength, which exists for any number of comparisons."""
    name: str
    strength: Measured
    """Bradley and Terry's, a natural logarithm around 0, with an interval by resampling."""
    believed: Measured
    """Posterior strength after all comparisons, with a prior around 0 and a spread of 2. It has an
    interval if few comparisons leave resamples without a value; comparisons count as
    independent, so pairs of one person's answers have none.
    """
    share: Measured
    """Of its comparisons won, or of its answers that passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipRanking:
    """All clips, the strongest first."""

    clips: tuple[RankedClip, ...]
    n_judgements: int
    n_comparisons: int
    """As many for preferences; for pass and fail, pairs of answers of which one passed."""
    drawn: str
    """Unit of resampling: `pair`, or `annotator`."""


def rank(
    judgements: Iterable[AnnotatorJudgement], *, seed: int, level: float = 0.95
) -> ClipRanking:
    """Rank clips by their judgements.

    Raises:
        InvalidValueError: Nothing was compared, there are too many clips, or the judgements answer
            another question.
    """
    said = list(judgements)
    if all(isinstance(each.value, PreferenceAnswer) for each in said):
        battles, drawn = list(_iter_preference_battles(said)), "pair"
        shares = _estimate_win_rates(battles, seed=seed, level=level)
    elif all(isinstance(each.value, PassFailAnswer) for each in said):
        battles, drawn = list(_iter_pass_fail_battles(said)), "annotator"
        shares = _estimate_pass_rates(said, level=level)
    else:
        msg = "only preferences and pass/fail answers rank clips. Name another campaign"
        raise InvalidValueError(msg)
    if not battles or len(shares) > MOST:
        msg = f"{len(battles)} comparisons of {len(shares)} clips give no ranking. Pull more judgements"
        raise InvalidValueError(msg)
    dependent = None if drawn == "pair" else Unmeasured("answers are part of many pairs")
    strengths = bradley_terry(battles, seed=seed, level=level)
    return ClipRanking(
        clips=tuple(
            _iter_ranked_clips(
                sorted(shares), battles, strengths, shares, dependent=dependent, level=level
            )
        ),
        n_judgements=len(said),
        n_comparisons=len(battles),
        drawn=drawn,
    )


def iter_comparisons(judgements: Iterable[AnnotatorJudgement]) -> Iterator[tuple[str, str]]:
    """Yield the preferred clip and the other clip of each preference."""
    for battle in _iter_preference_battles(judgements):
        yield battle.first, battle.second


def _iter_preference_battles(judgements: Iterable[AnnotatorJudgement]) -> Iterator[ClipBattle]:
    """Yield each preference as a battle, winner first; all judgements of a pair are resampled together."""
    for each in judgements:
        if isinstance(each.value, PreferenceAnswer):
            one, other = each.task.names
            is_first = each.value.better is Position.FIRST
            winner, loser = (one, other) if is_first else (other, one)
            yield ClipBattle(winner, loser, BattleOutcome.FIRST, each.task.id)


def _iter_pass_fail_battles(judgements: Iterable[AnnotatorJudgement]) -> Iterator[ClipBattle]:
    """Yield a battle for each clip that an annotator passed against each clip that they failed.

    All battles of an annotator are resampled together.
    """
    answers: dict[str, dict[bool, list[str]]] = {}
    for each in judgements:
        if isinstance(each.value, PassFailAnswer):
            sides = answers.setdefault(each.annotator, {True: [], False: []})
            sides[each.value.passed].append(each.task.names[0])
    if (n := sum(len(sides[True]) * len(sides[False]) for sides in answers.values())) > _MOST:
        msg = f"{n} pairs of answers are more than {_MOST}. Rank fewer clips"
        raise InvalidValueError(msg)
    for annotator, sides in answers.items():
        for passed, failed in product(sides[True], sides[False]):
            if passed != failed:
                yield ClipBattle(passed, failed, BattleOutcome.FIRST, annotator)


def _iter_ranked_clips(
    names: Sequence[str],
    battles: Sequence[ClipBattle],
    strengths: dict[str, Measured],
    shares: Mapping[str, Measured],
    *,
    dependent: Unmeasured | None,
    level: float,
) -> Iterator[RankedClip]:
    belief = estimate_strengths(names, [(battle.first, battle.second) for battle in battles])
    order = sorted(range(len(names)), key=lambda at: (-belief.mean[at], names[at]))
    nothing = Unmeasured("no annotator passed one of it and another clip, and failed the other")
    fought = Counter(name for battle in battles for name in (battle.first, battle.second))
    for place, at in enumerate(order, start=1):
        name = names[at]
        yield RankedClip(
            place=place,
            name=name,
            strength=strengths.get(name, nothing),
            believed=dependent or _estimate_clip_strength(belief, at, n=fought[name], level=level),
            share=shares[name],
        )


def _estimate_clip_strength(
    belief: StrengthPosterior, at: int, *, n: int, level: float
) -> Measured:
    value = float(belief.mean[at] - belief.mean.mean())
    # Around the mean of all: where they lie together says nothing of who is stronger.
    own = belief.covariance[at]
    variance = float(own[at] - 2 * own.mean() + belief.covariance.mean())
    reach = normal_quantile(level) * max(variance, 0.0) ** 0.5
    return Estimate(value=value, low=value - reach, high=value + reach, n=n, level=level)


def _estimate_win_rates(
    battles: Sequence[ClipBattle], *, seed: int, level: float
) -> dict[str, Measured]:
    """Compute the share of comparisons that each clip won; those of one pair are resampled together."""
    results: dict[str, list[tuple[float, str]]] = {}
    for battle in battles:
        results.setdefault(battle.first, []).append((1.0, battle.clip))
        results.setdefault(battle.second, []).append((0.0, battle.clip))
    return {
        name: bootstrap_mean(
            [won for won, _ in own],
            seed=seed,
            clusters=[p for _, p in own],
            bounds=(0, 1),
            level=level,
        )
        for name, own in results.items()
    }


def _estimate_pass_rates(
    judgements: Sequence[AnnotatorJudgement], *, level: float
) -> dict[str, Measured]:
    """Compute the share of people who passed each clip."""
    asked = Counter(each.task.names[0] for each in judgements)
    passed = Counter(
        each.task.names[0]
        for each in judgements
        if isinstance(each.value, PassFailAnswer) and each.value.passed
    )
    return {name: estimate_proportion(passed[name], n, level=level) for name, n in asked.items()}
