"""The skill model over a play: ability and bias of reviewers, realism of creators, and what else sways."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unreel.arena.play import NOBODY, SAID_GENERATED, SILENT, AnswerTable
from unreel.core.errors import UnknownNameError
from unreel.core.estimate import Measured, Unmeasured
from unreel.stats.sample import BoolArray
from unreel.stats.skill import SkillIntervals, measure_skill, standardise
from unreel.stats.skill_rows import AnswerColumns, TermLayout


@dataclass(frozen=True, slots=True, eq=False)
class SkillEstimates:
    """Estimates of the skill model, by index of the play."""

    reviewers: Sequence[Mapping[str, Measured]]
    creators: Sequence[Mapping[str, Measured]]
    sway: Mapping[str, Measured]


def find_abilities(play: AnswerTable, *, nuisances: Sequence[str] = ()) -> SkillEstimates:
    """Fit the model to every readable answer about real and generated clips; controls are no part of it.

    Raises:
        UnknownNameError: The lineup knows no nuisance of that name.
    """
    lineup = play.lineup
    columns = [_place(name, lineup.nuisances) for name in nuisances]
    of_clips = lineup.nuisance[:, columns].astype(np.float64)
    rows = np.flatnonzero((play.said != SILENT) & (lineup.control[play.clip] == NOBODY))
    clip = play.clip[rows]
    scaled = standardise(of_clips, np.flatnonzero(np.bincount(clip)))
    alike: BoolArray = np.all(scaled == 0, axis=0)
    shape = TermLayout(len(play.reviewers), len(lineup.creators), int((~alike).sum()))
    skills = measure_skill(
        AnswerColumns(
            reviewer=play.reviewer[rows].astype(np.int64),
            creator=lineup.creator[clip].astype(np.int64),
            scene=lineup.scene[clip].astype(np.int64),
            generated=play.said[rows] == SAID_GENERATED,
            nuisance=scaled[:, ~alike][clip],
        ),
        shape,
    )
    return _told(skills, nuisances, alike)


def _told(skills: SkillIntervals, nuisances: Sequence[str], alike: BoolArray) -> SkillEstimates:
    moved = iter(skills.sway)
    nothing = Unmeasured("all clips have the same value, or it is unknown")
    both = zip(skills.ability, skills.bias, strict=True)
    return SkillEstimates(
        reviewers=[{"ability": ability, "bias": bias} for ability, bias in both],
        creators=[{"realism": realism} for realism in skills.realism],
        sway={
            name: nothing if flat else next(moved)
            for name, flat in zip(nuisances, alike, strict=True)
        },
    )


def _place(name: str, known: Sequence[str]) -> int:
    if name not in known:
        kind = "nuisance"
        raise UnknownNameError(kind, name, list(known))
    return known.index(name)
