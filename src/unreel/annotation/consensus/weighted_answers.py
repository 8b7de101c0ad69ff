"""Consensus answers weighted by each person's estimated accuracy, if the data justify weights."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from unreel.annotation.consensus.majority import MajorityAnswer, NoMajority, Tally
from unreel.annotation.consensus.outcome import ConsensusRule, OpenReason, SettlementMethod
from unreel.annotation.opinion import AnnotatorOpinion, answer_of
from unreel.stats.copied_answers import (
    FEWEST_PEOPLE,
    FEWEST_SHARED,
    MOST_PEOPLE,
    CopiedPair,
    find_copied_pairs,
)
from unreel.stats.cross_fitted_skills import CrossFittedSkills, cross_fit_skills
from unreel.stats.sample import IntArray

_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class AnswerProbabilities:
    """Probability of each answer to each task, given all answers to all tasks."""

    chances: Mapping[str, Mapping[str, float]]
    """By task, then by answer."""
    weights: Mapping[str, float]
    """By annotator, the assumed share of right answers."""
    weighs: bool = False
    """Whether people count by their weights; if not, majorities stand."""
    pairs: tuple[tuple[str, str], ...] = ()
    """People who count as one voice."""
    notes: tuple[str, ...] = ()
    """Decisions about weights and pairs, as sentences."""

    def tally(
        self, opinions: Sequence[AnnotatorOpinion], rule: ConsensusRule, *, count: Tally
    ) -> MajorityAnswer | NoMajority:
        """Return the likeliest given answer if people are weighed, else what `count` returns, with its chance."""
        chances = self.chances[opinions[0].task.id]
        if not self.weighs:
            return self._count(opinions, rule, chances, count)
        given = sorted({answer_of(opinion.value) for opinion in opinions})
        best = max(given, key=lambda answer: chances[answer])
        if chances[best] > rule.sure:
            return MajorityAnswer(best, SettlementMethod.DAWID_SKENE, p_right=chances[best])
        return _build_unsure_result(given, chances, rule)

    def _count(
        self,
        opinions: Sequence[AnnotatorOpinion],
        rule: ConsensusRule,
        chances: Mapping[str, float],
        count: Tally,
    ) -> MajorityAnswer | NoMajority:
        """Count each pair once; a tie is decided without it."""
        there = {opinion.annotator for opinion in opinions}
        pairs = [pair for pair in self.pairs if there.issuperset(pair)]
        doubles = {second for _, second in pairs}
        result = count([o for o in opinions if o.annotator not in doubles], rule)
        if pairs and isinstance(result, NoMajority) and result.why is OpenReason.TIE:
            both = {name for pair in pairs for name in pair}
            others = [o for o in opinions if o.annotator not in both]
            result = count(others, rule) if others else result
        if isinstance(result, NoMajority):
            return result
        p_right = chances.get(result.answer)
        if p_right is not None and p_right < rule.sure - _ROUNDING:
            return _build_unsure_result(
                sorted({answer_of(o.value) for o in opinions}), chances, rule
            )
        return replace(result, p_right=p_right)


def _build_unsure_result(
    answers: Sequence[str], chances: Mapping[str, float], rule: ConsensusRule
) -> NoMajority:
    likely = ", ".join(f"{answer} {chances[answer]:.2f}" for answer in answers)
    return NoMajority(
        OpenReason.UNSURE, f"likely by all answers: {likely}; {rule.sure:g} is not enough"
    )


def weigh(tasks: Mapping[str, Sequence[AnnotatorOpinion]]) -> AnswerProbabilities:
    """Fit Dawid-Skene to all opinions, with pairs that share their answers as one voice."""
    rows = [
        (opinion.annotator, place, answer_of(opinion.value))
        for place, opinions in enumerate(tasks.values())
        for opinion in opinions
    ]
    if not rows:
        return AnswerProbabilities({}, {})
    people, tasks_at, answers = (list(column) for column in zip(*rows, strict=True))
    names, who = np.unique(people, return_inverse=True)
    words, said = np.unique(answers, return_inverse=True)
    what = np.array(tasks_at)
    found = find_copied_pairs(who, what, said)
    kept = np.ones(len(who), dtype=bool)
    for pair in found or ():
        kept &= ~((who == pair.second) & np.isin(what, what[who == pair.first]))
    skills = cross_fit_skills(who[kept], what[kept], said[kept], shape=(len(names), len(words)))
    return AnswerProbabilities(
        chances={
            id_: dict(zip(words.tolist(), line, strict=True))
            for id_, line in zip(tasks, skills.posterior.tolist(), strict=True)
        },
        weights=dict(zip(names.tolist(), skills.accuracy.tolist(), strict=True)),
        weighs=skills.weighs,
        pairs=tuple((str(names[p.first]), str(names[p.second])) for p in found or ()),
        notes=tuple(_iter_weighting_notes(skills, found, names.tolist(), what)),
    )


def _iter_weighting_notes(
    skills: CrossFittedSkills,
    pairs: Sequence[CopiedPair] | None,
    names: Sequence[str],
    what: IntArray,
) -> Iterator[str]:
    if not skills.converged:
        yield "Dawid-Skene did not converge: majorities are used, all annotators have equal weight"
    elif not skills.weighs:
        yield (
            f"weights do not predict held-out answers better than equal people over {len(np.unique(what))} tasks: "
            "majorities are used, all annotators have equal weight"
        )
    for pair in pairs or ():
        yield (
            f"{names[pair.first]} and {names[pair.second]} gave the same answer to {pair.n_same} of {pair.n_shared} tasks, "
            f"and their accuracy explains {pair.n_expected:.0f}: they count as one voice"
        )
    if pairs is None:
        yield (
            f"pairs that share their answers were not looked for: that needs {FEWEST_PEOPLE} to {MOST_PEOPLE} people, and {FEWEST_SHARED} tasks "
            f"that a pair judged; {len(names)} people judged"
        )
