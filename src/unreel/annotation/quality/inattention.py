"""Detection of people whose answers do not depend on the clip."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from unreel.annotation.opinion import AnnotatorOpinion, answer_of, group_by_task
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats.bootstrap import StatisticLimits, bootstrap
from unreel.stats.dawid_skene import AnnotatorSkills, dawid_skene
from unreel.stats.resampling import Statistic
from unreel.stats.sample import Array, IntArray, RowSample

FEW: Final = 20
"""Minimum number of answers for the classification as a spammer."""
_RARELY: Final = 1e-6
"""A label that is true so seldom says nothing of who says it."""
LOOKS: Final = 0.4
"""Minimum informedness of an annotator who looks."""


@dataclass(frozen=True, slots=True)
class InformednessEstimate:
    """Informedness of one person: 1 if always right, 0 if the answer is the same for every clip."""

    informed: Measured
    n_answers: int

    @property
    def is_spammer(self) -> bool:
        """Return whether the answers fit a person who does not look, and not a person who looks.

        False for fewer than `FEW` answers.
        """
        found = self.informed
        enough = self.n_answers >= FEW
        return enough and isinstance(found, Estimate) and found.low <= 0 and found.high < LOOKS


@dataclass(frozen=True, slots=True, eq=False)
class _ClipAnswers:
    who: IntArray
    task: IntArray
    said: IntArray
    names: Sequence[str]


def find_informed(
    opinions: Sequence[AnnotatorOpinion], *, seed: int
) -> Mapping[str, InformednessEstimate]:
    """Return, by annotator, the dependence of their answers on the truth estimated from the others.

    Dawid-Skene over all answers estimates the truths; the person's own answer is removed from them.
    The interval resamples clips and treats these truths as known.
    """
    answers = _find_shared_answers(opinions)
    if answers is None:
        return {}
    skills = dawid_skene(answers.who, answers.task, answers.said)
    found = {}
    for number, name in enumerate(answers.names):
        theirs = answers.who == number
        truths = _estimate_truths_without_annotator(
            skills, number, answers.task[theirs], answers.said[theirs]
        )
        said = np.eye(len(skills.shares))[answers.said[theirs]]
        found[name] = InformednessEstimate(
            _estimate_informedness(truths, said, seed=seed), int(theirs.sum())
        )
    return found


def _find_shared_answers(opinions: Sequence[AnnotatorOpinion]) -> _ClipAnswers | None:
    rows = [
        (opinion.annotator, place, answer_of(opinion.value))
        for place, those in enumerate(group_by_task(opinions).values())
        if len(those) > 1
        for opinion in those
    ]
    if not rows:
        return None
    people, tasks, answers = zip(*rows, strict=True)
    names, who = np.unique(people, return_inverse=True)
    _, said = np.unique(answers, return_inverse=True)
    _, task = np.unique(tasks, return_inverse=True)
    return _ClipAnswers(who, task, said, names.tolist())


def _estimate_truths_without_annotator(
    skills: AnnotatorSkills, who: int, task: IntArray, said: IntArray
) -> Array:
    """Return `[answer, label]`: the truths of a person's tasks, estimated from all other answers."""
    others = skills.posterior[task] / skills.confusion[who][:, said].T
    total = others.sum(axis=1, keepdims=True)
    truths: Array = np.where(total > 0, others / np.where(total > 0, total, 1), skills.shares)
    return truths


def _estimate_informedness(truths: Array, said: Array, *, seed: int) -> Measured:
    n_labels = truths.shape[1]
    if n_labels == 1:
        return Unmeasured("all annotators always gave the same answer")
    sample = RowSample.of(tuple(np.concatenate([truths, truths * said], axis=1).T))
    limits = StatisticLimits(-1.0, 1.0, sample.n_free)
    return bootstrap(
        _build_informedness_statistic(sample, n_labels), sample, seed=seed, limits=limits
    )


def _build_informedness_statistic(sample: RowSample, n_labels: int) -> Statistic:
    """Build the informedness statistic: mean recall over labels, relative to chance.

    It is 0 for answers that do not depend on the clip, and 1 if all answers are right.
    """
    columns = np.stack(sample.columns, axis=1)
    truths, hits = columns[:, :n_labels], columns[:, n_labels:]

    def excess_of(weights: Array) -> Array:
        asked = weights @ truths
        shares = np.divide(
            weights @ hits, asked, out=np.full_like(asked, np.nan), where=asked > _RARELY
        )
        known = np.isfinite(shares)
        n_known = known.sum(axis=1)
        total = np.where(known, shares, 0).sum(axis=1)
        excess: Array = np.full(len(total), np.nan)
        np.divide(total - 1, n_known - 1, out=excess, where=n_known > 1)
        return excess

    return excess_of
