"""The same number of described pieces is kept of every group of stories."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from pydantic import TypeAdapter

from unreel.curation.cluster.grouping import cluster, embed, sample_evenly
from unreel.curation.cluster.section import ClusterSection
from unreel.curation.describe.take import DESCRIBE
from unreel.curation.piece import ClipSegment, ExcludedSegment, sift
from unreel.curation.pieces import ReiterableStream
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step import StepName, StepSubject
from unreel.reviewers.sentences import MiniLmEncoder

CLUSTER: Final = "cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryGroup:
    """The group that a story is in, `None` where its text has no direction, and whether it was drawn."""

    group: int | None
    kept: bool


def take(_section: ClusterSection, work: CurationJob, state: CurationState) -> CurationState:
    """The same number of described pieces from every group of stories; the others go."""
    seed = work.recipe.seed
    pieces = state.pieces
    step = StepName(name=CLUSTER, version=1, settings={"seed": seed}, finds=TypeAdapter(StoryGroup))
    subjects = ReiterableStream(
        lambda: (_subject(piece) for piece in pieces if DESCRIBE in piece.notes)
    )
    found = work.bench.settle(step, subjects, lambda: group_stories(subjects, seed=seed))
    own = (next(found) if DESCRIBE in piece.notes else None for piece in pieces)
    return state.after(work.shelf.sift(CLUSTER, sift(CLUSTER, pieces, own, _if_drawn)))


def _subject(piece: ClipSegment) -> StepSubject:
    return piece.subject(story=piece.notes[DESCRIBE]["story"])


def _if_drawn(piece: ClipSegment, own: StoryGroup) -> ClipSegment | ExcludedSegment:
    if own.kept:
        return replace(piece, notes={**piece.notes, CLUSTER: own.group})
    detail = f"group {own.group} has more clips than the smallest one"
    return piece.left_out(CLUSTER, "not-drawn", detail)


def group_stories(asked: Iterable[StepSubject], *, seed: int) -> Callable[[int], StoryGroup]:
    """Return a function that gives the decision for the item at an index."""
    stories: dict[str, str] = {subject.clip: subject.given["story"] for subject in asked}
    vectors = embed(stories, MiniLmEncoder())
    if not vectors:
        return lambda _: StoryGroup(group=None, kept=True)
    groups = cluster(vectors, seed=seed).groups
    drawn = frozenset(sample_evenly(groups, seed=seed))
    clips = [subject.clip for subject in asked]
    return lambda place: StoryGroup(group=groups.get(clips[place]), kept=clips[place] in drawn)
