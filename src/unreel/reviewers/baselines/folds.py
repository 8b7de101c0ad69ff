"""Held-out groups for fitted baselines: a fold of scenes and a part of the creators for each clip.

Scenes are assigned to folds, for real and generated clips alike, so that each fold has both
labels. Creators are assigned to parts. A *cell* is a part and a fold. The model of a cell is
fitted without the creators of the part and without the scenes of the fold, and scores the clips
of **both** labels in the cell. So training data remain if each creator covers every scene, has
its own scenes, or is the only creator. Clips of different labels are never compared through two
different models: a held-out group shifts the rest of its label in the other direction, so such
a comparison is below chance for random labels.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unreel.core.content_ids import digest
from unreel.core.estimate import Unmeasured

N_FOLDS = 5
MAX_PARTS = 10
"""Maximum number of parts; further creators share parts, and all creators of a part are held out together."""
MIN_SCENES = 2
"""Minimum number of scenes of each label: one to score and another to fit on."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ClipCreatorAndScene:
    """Creator and scene of a clip, which are held out together with it. A clip may be its own scene."""

    creator: str | None
    scene: str

    @classmethod
    def of(cls, clip: str, *, creator: str | None, group: str) -> "ClipCreatorAndScene":
        """Return the creator and scene of a clip; `group` is "" if no other clip shares the scene."""
        return cls(creator, f"group {group}" if group else f"clip {clip}")


@dataclass(frozen=True, slots=True, eq=False)
class FoldAssignment:
    """Held-out cell of each clip: fold of scenes and part of the creators, in input order."""

    folds: Numbers
    parts: Numbers
    """Part of each clip's creator; for a real clip, the part of those generated clips that the same model scores."""
    made: NDArray[np.bool_]

    n_folds: int
    n_parts: int
    """Number of parts; with a single part only scenes are held out, no creators."""

    def without_parts(self) -> "FoldAssignment":
        """Return the same folds with all creators in one part: only scenes are held out."""
        return replace(self, parts=np.zeros_like(self.parts), n_parts=1)

    def cells(self) -> Iterator[tuple[int, int]]:
        """Yield the part and the fold of every held-out cell that has a clip."""
        yield from sorted(set(zip(self.parts.tolist(), self.folds.tolist(), strict=True)))

    def teachers(self, part: int, fold: int) -> NDArray[np.bool_]:
        """Return a mask of the clips to fit on for the held-out cell of `part` and `fold`."""
        elsewhere: NDArray[np.bool_] = self.folds != fold
        if self.n_parts == 1:
            return elsewhere
        input_spec: NDArray[np.bool_] = elsewhere & (~self.made | (self.parts != part))
        return input_spec


def assign_clip_folds(
    creators_and_scenes: Sequence[ClipCreatorAndScene], *, seed: int
) -> FoldAssignment | Unmeasured:
    """Assign scenes and creators to hold-out folds; `Unmeasured` below two scenes of a label."""
    scenes_by_label = [
        {row.scene for row in creators_and_scenes if (row.creator is None) is real}
        for real in (False, True)
    ]
    n_folds = min(N_FOLDS, *map(len, scenes_by_label))
    if n_folds < MIN_SCENES:
        return Unmeasured(
            f"one scene must teach while another is judged, and there are {len(scenes_by_label[0])} of generated "
            f"and {len(scenes_by_label[1])} of real clips. Add scenes, or give scenes of their own other groups"
        )
    fold_of = _assign_scene_folds(creators_and_scenes, n_folds, seed=seed)
    folds = np.array([fold_of[row.scene] for row in creators_and_scenes])
    is_generated = np.array([row.creator is not None for row in creators_and_scenes])
    clips = Counter(owner.creator for owner in creators_and_scenes if owner.creator is not None)
    order = sorted(clips, key=lambda name: (-clips[name], digest("part", str(seed), name)))
    filled = [0] * min(MAX_PARTS, len(order))
    part_of = {}
    for creator in order:
        part_of[creator] = filled.index(min(filled))
        filled[part_of[creator]] += clips[creator]
    parts = np.array(
        [-1 if owner.creator is None else part_of[owner.creator] for owner in creators_and_scenes]
    )
    for fold in range(int(folds.max()) + 1):
        in_fold = folds == fold
        real = np.flatnonzero(in_fold & (parts < 0))
        parts[real] = np.resize(parts[in_fold & (parts >= 0)], len(real))
    return FoldAssignment(folds, parts, is_generated, n_folds, int(parts.max()) + 1)


def _assign_scene_folds(
    creators_and_scenes: Sequence[ClipCreatorAndScene], n_folds: int, *, seed: int
) -> dict[str, int]:
    """Assign scenes, those with both labels first, to the fold with fewest clips of their labels."""
    creators: defaultdict[str, list[str | None]] = defaultdict(list)
    for owner in creators_and_scenes:
        creators[owner.scene].append(owner.creator)

    def order(scene: str) -> tuple[int, int, str, str]:
        names = sorted({creator or "" for creator in creators[scene] if creator is not None})
        n_labels = len({creator is None for creator in creators[scene]})
        return (
            -n_labels,
            -len(creators[scene]),
            "".join(names[:1]),
            digest("fold", str(seed), scene),
        )

    load = [Counter[bool]() for _ in range(n_folds)]
    fold_of = {}
    for scene in sorted(creators, key=order):
        clips = Counter(creator is None for creator in creators[scene])
        counts = [sum(filled[label] for label in clips) for filled in load]
        fold_of[scene] = counts.index(min(counts))
        load[fold_of[scene]].update(clips)
    return fold_of
