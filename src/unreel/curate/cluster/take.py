"""The same number of described pieces is kept of every group of stories."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from pydantic import TypeAdapter

from unreel.curate.cluster.grouping import cluster, embed, sample_evenly
from unreel.curate.cluster.section import ClusterSection
from unreel.curate.describe.take import DESCRIBE
from unreel.curate.piece import LeftOut, Piece, sift
from unreel.curate.pieces import Walk
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
    pieces = state.pieces
    step = StepName(name=CLUSTER, version=1, settings={"seed": seed}, finds=TypeAdapter(Grouped))
    subjects = Walk(lambda: (_subject(piece) for piece in pieces if DESCRIBE in piece.notes))
    found = work.bench.settle(step, subjects, lambda: group_stories(subjects, seed=seed))
    own = (next(found) if DESCRIBE in piece.notes else None for piece in pieces)
    return state.after(work.shelf.sift(CLUSTER, sift(CLUSTER, pieces, own, _if_drawn)))


def _subject(piece: Piece) -> Subject:
    return piece.subject(story=piece.notes[DESCRIBE]["story"])


def _if_drawn(piece: Piece, own: Grouped) -> Piece | LeftOut:
    if own.kept:
        return replace(piece, notes={**piece.notes, CLUSTER: own.group})
    detail = f"group {own.group} has more clips than the smallest one"
    return piece.left_out(CLUSTER, "not-drawn", detail)


def group_stories(asked: Iterable[Subject], *, seed: int) -> Callable[[int], Grouped]:
    """Return a function that gives the decision for the item at an index."""
    stories: dict[str, str] = {subject.clip: subject.given["story"] for subject in asked}
    vectors = embed(stories, MiniLmEncoder())
    if not vectors:
        return lambda _: Grouped(group=None, kept=True)
    groups = cluster(vectors, seed=seed).groups
    drawn = frozenset(sample_evenly(groups, seed=seed))
    clips = [subject.clip for subject in asked]
    return lambda place: Grouped(group=groups.get(clips[place]), kept=clips[place] in drawn)
