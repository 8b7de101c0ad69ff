"""Cluster step: groups descriptions by meaning and keeps equally many clips from every cluster."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError
from unreel.core.registry import LazyImport
from unreel.curation.describe import DESCRIBE
from unreel.curation.recipe import ClusterRecipeSection
from unreel.curation.segment import ClipSegment, ExcludedSegment, filter_segments
from unreel.curation.segment_table import ReiterableStream
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step_execution import CurationStepRequest, VersionedCurationStep
from unreel.reviewers.sentence_embeddings import MiniLmEncoder, SentenceEncoder, embed_sentences

MOST_CLUSTERS = 20
"""Maximum number of clusters; the paper found 8 for 149 clips."""
_STARTS = 10
_SAME = 1e-9
"""Maximum difference of equal silhouettes, for which the smaller number of clusters is chosen."""
_EXTRA = "curate"
_KMEANS = LazyImport("sklearn.cluster:KMeans", _EXTRA)
_SILHOUETTE = LazyImport("sklearn.metrics:silhouette_score", _EXTRA)

Vectors = Mapping[str, npt.NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptionClusters:
    """Cluster number of each description, by name; clusters are numbered from 0, largest first."""

    groups: Mapping[str, int]
    silhouettes: Mapping[int, float]
    """Mean silhouette for each number of clusters that was tried."""

    @property
    def k(self) -> int:
        return len(set(self.groups.values()))


def embed_descriptions(
    stories: Mapping[str, str], encoder: SentenceEncoder
) -> dict[str, npt.NDArray[np.float64]]:
    """Compute the sentence embedding of each description, by name; texts without one are omitted."""
    names = sorted(stories)
    vectors = embed_sentences([stories[name] for name in names], encoder)
    return {name: vector for name, vector in zip(names, vectors, strict=True) if vector is not None}


def cluster_vectors(
    vectors: Vectors, *, seed: int, max_clusters: int = MOST_CLUSTERS
) -> DescriptionClusters:
    """Group vectors by k-means, with the number of groups of largest mean silhouette.

    Numbers of groups from 2 to `max_clusters` are tried. The result does not depend on the order of the
    vectors. Fewer than three different vectors form one group: a silhouette needs two groups, one
    of them with two vectors.
    """
    names = sorted(vectors)
    if not names:
        raise InvalidValueError("there is nothing to group. Describe clips first")
    rows = np.stack([vectors[name] for name in names])
    n_different = len(np.unique(rows, axis=0))
    silhouettes: dict[int, float] = {}
    best: npt.NDArray[np.intp] = np.zeros(len(names), np.intp)
    for k in range(2, min(max_clusters, n_different - 1) + 1):
        labels = _compute_cluster_labels(rows, k=k, seed=seed)
        silhouettes[k] = float(_SILHOUETTE.load()(rows, labels))
        if _has_largest_silhouette(silhouettes, k):
            best = labels
    return DescriptionClusters(
        groups=_number_clusters_by_size(names, best), silhouettes=silhouettes
    )


def sample_evenly_by_group(
    groups: Mapping[str, int], *, seed: int, per_group: int | None = None
) -> tuple[str, ...]:
    """Sample the same number of names from every group and return them sorted.

    The default of `per_group` is the size of the smallest group. The sample depends only on the
    names and `seed`. A larger `per_group` keeps the names of a smaller `per_group`.
    """
    sizes = Counter(groups.values())
    if not sizes:
        return ()
    smallest = min(sizes.values())
    n_each = smallest if per_group is None else per_group
    if not 1 <= n_each <= smallest:
        raise InvalidValueError(
            f"cannot take {n_each} of every group: the smallest has {smallest}. Ask for 1 to {smallest}"
        )
    shuffled = sorted(groups, key=lambda name: digest("sample", str(seed), name))
    counts: Counter[int] = Counter()
    sample: list[str] = []
    for name in shuffled:
        if counts[groups[name]] < n_each:
            counts[groups[name]] += 1
            sample.append(name)
    return tuple(sorted(sample))


def _has_largest_silhouette(silhouettes: Mapping[int, float], k: int) -> bool:
    """Return whether `k` clusters have a larger mean silhouette than every smaller number of clusters."""
    return all(silhouettes[k] > value + _SAME for tried, value in silhouettes.items() if tried < k)


def _compute_cluster_labels(
    rows: npt.NDArray[np.float64], *, k: int, seed: int
) -> npt.NDArray[np.intp]:
    model: Any = _KMEANS.load()(n_clusters=k, n_init=_STARTS, random_state=seed)
    labels: npt.NDArray[np.intp] = model.fit_predict(rows)
    return labels


def _number_clusters_by_size(names: Sequence[str], labels: npt.NDArray[np.intp]) -> dict[str, int]:
    """Number the clusters by size, then by first name, because the numbers of k-means are arbitrary."""
    members: dict[int, list[str]] = {}
    for name, label in zip(names, labels.tolist(), strict=True):
        members.setdefault(label, []).append(name)
    ordered = sorted(members.values(), key=lambda group: (-len(group), group[0]))
    return {name: number for number, group in enumerate(ordered) for name in group}


CLUSTER = "cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSamplingDecision:
    """Decision whether a described clip is kept, and its cluster, `None` without an embedding."""

    group: int | None
    kept: bool


def run_cluster_step(
    _section: ClusterRecipeSection, job: CurationJob, state: CurationState
) -> CurationState:
    """Keep the same number of described segments from every cluster; exclude the other described ones."""
    seed = job.recipe.seed
    segments = state.segments
    step = VersionedCurationStep(
        name=CLUSTER, version=1, settings={"seed": seed}, finds=TypeAdapter(ClusterSamplingDecision)
    )
    subjects = ReiterableStream(
        lambda: (
            _build_cluster_request(segment) for segment in segments if DESCRIBE in segment.notes
        )
    )
    drawn = job.context.run_cached(
        step, subjects, lambda: decide_cluster_sampling(subjects, seed=seed)
    )
    results = (next(drawn) if DESCRIBE in segment.notes else None for segment in segments)
    return state.after(
        job.directory.write(
            CLUSTER, filter_segments(CLUSTER, segments, results, _apply_cluster_sampling)
        )
    )


def _build_cluster_request(segment: ClipSegment) -> CurationStepRequest:
    return segment.subject(story=segment.notes[DESCRIBE]["story"])


def _apply_cluster_sampling(
    segment: ClipSegment, decision: ClusterSamplingDecision
) -> ClipSegment | ExcludedSegment:
    if decision.kept:
        return replace(segment, notes={**segment.notes, CLUSTER: decision.group})
    detail = f"group {decision.group} has more clips than the smallest one"
    return segment.left_out(CLUSTER, "not-drawn", detail)


def decide_cluster_sampling(
    requests: Iterable[CurationStepRequest], *, seed: int
) -> Callable[[int], ClusterSamplingDecision]:
    """Cluster the descriptions in `requests`; return a function from a request's index to its decision."""
    stories: dict[str, str] = {subject.clip: subject.given["story"] for subject in requests}
    vectors = embed_descriptions(stories, MiniLmEncoder())
    if not vectors:
        return lambda _: ClusterSamplingDecision(group=None, kept=True)
    groups = cluster_vectors(vectors, seed=seed).groups
    sample = frozenset(sample_evenly_by_group(groups, seed=seed))
    clips = [subject.clip for subject in requests]
    return lambda index: ClusterSamplingDecision(
        group=groups.get(clips[index]), kept=clips[index] in sample
    )
