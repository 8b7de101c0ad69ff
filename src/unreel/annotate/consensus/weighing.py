"""Answers weighed by how well each person was seen to answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unreel.annotate.consensus.counting import Leading, Unclear
from unreel.annotate.consensus.outcome import Open, Way
from unreel.annotate.consensus.rule import Rule
from unreel.annotate.opinion import Opinion, answer_of
from unreel.stats.dawid_skene import dawid_skene


@dataclass(frozen=True, slots=True)
class Weighing:
    """Probability of each answer to each task, given all answers to all tasks."""

    chances: Mapping[str, Mapping[str, float]]
    """By task, then by answer."""
    weights: Mapping[str, float]
    """By annotator, the share of right answers that is reckoned with."""

    def tally(self, opinions: Sequence[Opinion], rule: Rule) -> Leading | Unclear:
        """The likeliest of the answers that somebody gave, if it is likely enough."""
        chances = self.chances[opinions[0].task.id]
        given = sorted({answer_of(opinion.value) for opinion in opinions})
        best = max(given, key=lambda answer: chances[answer])
        if chances[best] > rule.sure:
            return Leading(best, Way.DAWID_SKENE, p_right=chances[best])
        told = ", ".join(f"{answer} {chances[answer]:.2f}" for answer in given)
        return Unclear(Open.UNSURE, f"likely by all answers: {told}; {rule.sure:g} is not enough")


def weigh(tasks: Mapping[str, Sequence[Opinion]]) -> Weighing:
    """Dawid-Skene over all opinions, which stand by task and by name."""
    rows = [
        (opinion.annotator, place, answer_of(opinion.value))
        for place, opinions in enumerate(tasks.values())
        for opinion in opinions
    ]
    if not rows:
        return Weighing({}, {})
    people, tasks_at, answers = (list(column) for column in zip(*rows, strict=True))
    names, who = np.unique(people, return_inverse=True)
    words, said = np.unique(answers, return_inverse=True)
    found = dawid_skene(who, tasks_at, said)
    chances = {
        id_: dict(zip(words.tolist(), line, strict=True))
        for id_, line in zip(tasks, found.posterior.tolist(), strict=True)
    }
    return Weighing(chances, dict(zip(names.tolist(), found.accuracy.tolist(), strict=True)))
