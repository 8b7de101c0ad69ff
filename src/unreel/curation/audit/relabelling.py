"""Permutation of labels: the same clips in the same folds with labels that carry no information.

If a scene has both labels, they are permuted among its clips. Scenes of one label stay together and
exchange labels within their fold: clips of one source are similar, and independent labels would
cause false alarms.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np

from unreel.reviewers.floors.folding import FoldAssignment, FoldGroup, Numbers

RELABELLINGS: Final = 199
"""Enough for a chance of one in twenty to be exact, and for a share of 0.005 to be told."""


def relabel(owners: Sequence[FoldGroup], folding: FoldAssignment, *, seed: int) -> Numbers:
    """A line for each relabelled set: the clip whose label each clip takes."""
    scenes: defaultdict[str, list[int]] = defaultdict(list)
    for index, own in enumerate(owners):
        scenes[own.scene].append(index)
    members = [np.array(own) for own in scenes.values()]
    mixed = [own for own in members if len(set(folding.made[own].tolist())) > 1]
    lone = [own for own in members if len(set(folding.made[own].tolist())) == 1]
    by_fold = [[own for own in lone if folding.folds[own[0]] == f] for f in range(folding.n_folds)]
    rng = np.random.default_rng(seed)
    labels = np.tile(np.arange(len(owners)), (RELABELLINGS, 1))
    for donors in labels:
        for scene in mixed:
            donors[scene] = rng.permutation(scene)
        for exchanged in by_fold:
            _exchange(exchanged, donors, rng)
    return labels


def _exchange(scenes: Sequence[Numbers], donors: Numbers, rng: np.random.Generator) -> None:
    """Give each scene the labels of another, in any order, some twice or not at all where sizes differ."""
    if len({len(own) for own in scenes}) == 1:
        block = np.stack(scenes)
        donors[block] = rng.permuted(rng.permutation(block), axis=1)
        return
    for own, other in zip(scenes, rng.permutation(len(scenes)).tolist(), strict=True):
        labels = rng.permutation(scenes[other])
        donors[own] = labels[np.arange(len(own)) % len(labels)]
