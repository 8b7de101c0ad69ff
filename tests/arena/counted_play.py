"""A play from published counts: papers print how often a reviewer said what, not of which clip."""

from collections.abc import Mapping, Sequence

import numpy as np

from published.recompute import REAL, AnswerCounts
from unreel.arena.answers.answer_table import (
    ANSWERED_GENERATED,
    ANSWERED_REAL,
    NOBODY,
    SILENT,
    SeasonAnswerTable,
    SeasonClips,
)

Counted = Mapping[str, Mapping[str, AnswerCounts]]
"""By reviewer, then by `REAL` or creator."""


def counted_play(counted: Counted, *, condition: str, seed: int = 0) -> SeasonAnswerTable:
    """Answers that have exactly those counts.

    A source has as many clips as its best read reviewer has answers; where another has fewer, the rest were
    silent. Which clip got which answer is not known: it is drawn by `seed`, and every clip is a scene of
    its own, so intervals are those of independent clips.
    """
    sources = {source for by in counted.values() for source in by}
    creators = sorted(sources - {REAL})
    sizes = {
        source: max(by[source].valid for by in counted.values() if source in by)
        for source in sorted(sources)
    }
    lineup, first = _lineup(sizes, creators)
    rng = np.random.default_rng(seed)
    reviewer, clip, said = [], [], []
    for place, name in enumerate(sorted(counted)):
        for source in sorted(counted[name]):
            answers = _answers(counted[name][source], sizes[source], rng)
            reviewer.append(np.full(len(answers), place))
            clip.append(first[source] + np.arange(len(answers)))
            said.append(answers)
    return SeasonAnswerTable(
        clips=lineup,
        condition=condition,
        reviewers=tuple(sorted(counted)),
        reviewer=np.concatenate(reviewer).astype(np.int32),
        clip=np.concatenate(clip).astype(np.int32),
        answer_codes=np.concatenate(said).astype(np.int8),
    )


def _lineup(
    sizes: Mapping[str, int], creators: Sequence[str]
) -> tuple[SeasonClips, Mapping[str, int]]:
    """The clips, and where those of each source start."""
    first: dict[str, int] = {}
    names: list[str] = []
    creator: list[int] = []
    for source, size in sizes.items():
        first[source] = len(names)
        names += [f"{source} {number}" for number in range(size)]
        creator += [NOBODY if source == REAL else creators.index(source)] * size
    n = len(names)
    lineup = SeasonClips(
        names=tuple(names),
        creators=tuple(creators),
        scenes=tuple(names),
        creator=np.array(creator, dtype=np.int32),
        scene=np.arange(n, dtype=np.int32),
        control=np.full(n, NOBODY, dtype=np.int32),
        nuisance=np.zeros((n, 0)),
    )
    return lineup, first


def _answers(count: AnswerCounts, size: int, rng: np.random.Generator) -> np.ndarray:
    answers = np.full(size, SILENT)
    answers[: count.valid] = ANSWERED_REAL
    answers[: count.said_fake] = ANSWERED_GENERATED
    return rng.permutation(answers)
