"""The same number of described pieces is kept of every group of stories."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import TypeAdapter

from unreel.curate.cluster.grouping import cluster, embed, sample_evenly
from unreel.curate.cluster.section import ClusterSection
from unreel.curate.describe.take import DESCRIBE
from unreel.curate.piece import LeftOut, Piece, sift
from unreel.curate.state import State, Work
from unreel.curate.step import StepName, Subject
from unreel.reviewers.sentences import MiniLmEncoder

CLUSTER: Final = "cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """The group that a story is in, `None` where its text has no direction, and whether it was drawn."""

    group: int | None
    kept: bool


def take(_section: ClusterSection, work: Work, state: State) -> State:
    """The same number of described pieces from every group of stories; the others go."""
    seed = work.recipe.seed
    described = [piece for piece in state.pieces if DESCRIBE in piece.notes]
    step = StepName(name=CLUSTER, version=1, settings={"seed": seed}, finds=TypeAdapter(Grouped))
    subjects = [piece.subject(story=piece.notes[DESCRIBE].story) for piece in described]
    found = work.bench.settle(step, subjects, lambda asked: _groups(asked, seed=seed))
    groups = dict(zip((piece.id for piece in described), found, strict=True))
    own = [groups.get(piece.id) for piece in state.pieces]
    return state.after(sift(CLUSTER, state.pieces, own, _if_drawn))


def _if_drawn(piece: Piece, own: Grouped) -> Piece | LeftOut:
    if own.kept:
        return replace(piece, notes={**piece.notes, CLUSTER: own.group})
    detail = f"group {own.group} has more clips than the smallest one"
    return piece.left_out(CLUSTER, "not-drawn", detail)


def _groups(asked: Sequence[Subject], *, seed: int) -> list[Grouped]:
    stories: dict[str, str] = {subject.clip: subject.given["story"] for subject in asked}
    vectors = embed(stories, MiniLmEncoder())
    if not vectors:
        return [Grouped(group=None, kept=True) for _ in asked]
    groups = cluster(vectors, seed=seed).groups
    drawn = frozenset(sample_evenly(groups, seed=seed))
    clips = [subject.clip for subject in asked]
    return [Grouped(group=groups.get(clip), kept=clip in drawn) for clip in clips]
