"""Sampling of the same number of described pieces from every group of stories."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from unreel.core.errors import InvalidValueError
from unreel.core.identity import digest
from unreel.core.registry import LazyImport
from unreel.curation.describe import DESCRIBE
from unreel.curation.piece import ClipSegment, ExcludedSegment, apply_filter
from unreel.curation.pieces import ReiterableStream
from unreel.curation.recipe import ClusterSection
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step import StepName, StepSubject
from unreel.reviewers.sentence_embeddings import MiniLmEncoder, SentenceEncoder, embed_sentences

MOST_CLUSTERS: Final = 20
"""The paper found 8 for 149 clips."""
_STARTS: Final = 10
_SAME: Final = 1e-9
"""Silhouettes closer than this are equal: the smaller number of groups wins."""
_EXTRA: Final = "curate"
_KMEANS: Final = LazyImport("sklearn.cluster:KMeans", _EXTRA)
_SILHOUETTE: Final = LazyImport("sklearn.metrics:silhouette_score", _EXTRA)

Vectors = Mapping[str, npt.NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryClusters:
    """Group of each item: groups are numbered from 0, largest first."""

    groups: Mapping[str, int]
    silhouettes: Mapping[int, float]
    """The mean silhouette for each number of groups that was tried."""

    @property
    def k(self) -> int:
        """Return the number of groups."""
        return len(set(self.groups.values()))


def embed(
    stories: Mapping[str, str], encoder: SentenceEncoder
) -> dict[str, npt.NDArray[np.float64]]:
    """Compute an embedding for each story, by story name; omit stories without an embedding."""
    names = sorted(stories)
    found = embed_sentences([stories[name] for name in names], encoder)
    return {name: vector for name, vector in zip(names, found, strict=True) if vector is not None}


def cluster(vectors: Vectors, *, seed: int, most: int = MOST_CLUSTERS) -> StoryClusters:
    """Group items by k-means, with the number of groups, 2 to `most`, of largest mean silhouette.

    The result does not depend on the order of the items. Fewer than three different items form one
    group: a silhouette needs two groups, one of them with two items.
    """
    names = sorted(vectors)
    if not names:
        msg = "there is nothing to group. Describe clips first"
        raise InvalidValueError(msg)
    rows = np.stack([vectors[name] for name in names])
    n_different = len(np.unique(rows, axis=0))
    silhouettes: dict[int, float] = {}
    best: npt.NDArray[np.intp] = np.zeros(len(names), np.intp)
    for k in range(2, min(most, n_different - 1) + 1):
        labels = _compute_cluster_labels(rows, k=k, seed=seed)
        silhouettes[k] = float(_SILHOUETTE.load()(rows, labels))
        if _is_better_fit(silhouettes, k):
            best = labels
    return StoryClusters(groups=_number_groups(names, best), silhouettes=silhouettes)


def sample_evenly(
    groups: Mapping[str, int], *, seed: int, per_group: int | None = None
) -> tuple[str, ...]:
    """Sample the same number of items from every group, sorted; by default the smallest group's size.

    The sample depends only on the item names and `seed`. A larger `per_group` keeps the items of a
    smaller `per_group`.
    """
    sizes = Counter(groups.values())
    if not sizes:
        return ()
    room = min(sizes.values())
    wanted = room if per_group is None else per_group
    if not 1 <= wanted <= room:
        msg = f"cannot take {wanted} of every group: the smallest has {room}. Ask for 1 to {room}"
        raise InvalidValueError(msg)
    drawn = sorted(groups, key=lambda name: digest("sample", str(seed), name))
    taken: Counter[int] = Counter()
    kept: list[str] = []
    for name in drawn:
        if taken[groups[name]] < wanted:
            taken[groups[name]] += 1
            kept.append(name)
    return tuple(sorted(kept))


def _is_better_fit(silhouettes: Mapping[int, float], k: int) -> bool:
    """Return whether `k` groups have a larger silhouette than every smaller number of groups."""
    return all(silhouettes[k] > value + _SAME for tried, value in silhouettes.items() if tried < k)


def _compute_cluster_labels(
    rows: npt.NDArray[np.float64], *, k: int, seed: int
) -> npt.NDArray[np.intp]:
    model: Any = _KMEANS.load()(n_clusters=k, n_init=_STARTS, random_state=seed)
    labels: npt.NDArray[np.intp] = model.fit_predict(rows)
    return labels


def _number_groups(names: Sequence[str], labels: npt.NDArray[np.intp]) -> dict[str, int]:
    """Assign group numbers by size, then by first name, because k-means numbers are arbitrary."""
    members: dict[int, list[str]] = {}
    for name, label in zip(names, labels.tolist(), strict=True):
        members.setdefault(label, []).append(name)
    ordered = sorted(members.values(), key=lambda group: (-len(group), group[0]))
    return {name: number for number, group in enumerate(ordered) for name in group}


CLUSTER: Final = "cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryGroup:
    """The group of a story, `None` if its text has no embedding, and whether the story was sampled."""

    group: int | None
    kept: bool


def run_step(_section: ClusterSection, work: CurationJob, state: CurationState) -> CurationState:
    """Sample the same number of described pieces from every group of stories; exclude the others."""
    seed = work.recipe.seed
    pieces = state.pieces
    step = StepName(name=CLUSTER, version=1, settings={"seed": seed}, finds=TypeAdapter(StoryGroup))
    subjects = ReiterableStream(
        lambda: (_build_subject(piece) for piece in pieces if DESCRIBE in piece.notes)
    )
    found = work.bench.settle(step, subjects, lambda: group_stories(subjects, seed=seed))
    own = (next(found) if DESCRIBE in piece.notes else None for piece in pieces)
    return state.after(
        work.shelf.sift(CLUSTER, apply_filter(CLUSTER, pieces, own, _apply_group_draw))
    )


def _build_subject(piece: ClipSegment) -> StepSubject:
    return piece.subject(story=piece.notes[DESCRIBE]["story"])


def _apply_group_draw(piece: ClipSegment, own: StoryGroup) -> ClipSegment | ExcludedSegment:
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
