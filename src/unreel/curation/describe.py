"""Describe step: descriptions by a vision model, difficulty, and the cluster step that samples them by meaning."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter
from scipy import ndimage

from unreel.asking.asker import Asker
from unreel.core.clip import Clip, ClipFacts
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label
from unreel.core.question import Condition, Instrument, Question
from unreel.core.registry import LazyImport
from unreel.curation.recipe import ClusterRecipeSection, DescribeRecipeSection
from unreel.curation.segment import (
    ClipSegment,
    CurationJob,
    CurationState,
    ExcludedSegment,
    ReiterableStream,
    filter_segments,
)
from unreel.curation.step_execution import (
    CurationStepRequest,
    VersionedCurationStep,
    format_canonical_json,
    to_json_values,
)
from unreel.engine.stage import MediaStage, Row, WorkerResources, convert_to_failed_row
from unreel.engine.storage_access import ClipAccessSettings, provide_local_clip_file
from unreel.media.decode import Rgb
from unreel.media.picture import scale_down_picture
from unreel.protocols.answer_text import strip_thinking
from unreel.protocols.presentation import quote_text_for_prompt
from unreel.protocols.reality.prompts import STORYBOARD
from unreel.reviewers.factory import ReviewerFactory, ReviewerWithPrices
from unreel.reviewers.sentence_embeddings import MiniLmEncoder, SentenceEncoder, embed_sentences

EASY_LENGTH_S = 5
EASY_ACTIONS = 1
EASY_OBJECTS = 6
EASY_BACKGROUND = 0.25

_SMALL = 96
_BLOCK = 5
_FLAT_LEVELS = 6.0
_NOT_PLAIN = 2
"""Number of exceeded limits, other than length, that makes a clip hard."""
_STEP = re.compile(
    r"\b(then|next|afterwards?|after that|subsequently|finally|later|followed by|"
    r"before (?:turning|moving|picking|placing|putting|cutting|taking))\b",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"\b(?:an?|the|his|her|their|its|two|three|several|some)\s+((?:[a-z'-]+\s+){0,2}?[a-z'-]+)"
    r"(?=\s+(?:is|are|was|were|and|or|in|on|at|of|with|by|to|into|onto|from|over|under|through|as|"
    r"while|that|which|who|[a-z]+s|[a-z]+ing)\b|[.,;:!?]|$)",
    re.IGNORECASE,
)


class ClipDifficulty(StrEnum):
    """Difficulty of a clip, easy or hard, as in Video Reality Test."""

    EASY = "easy"
    HARD = "hard"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipComplexity:
    """Complexity of a clip in four measures: length, actions, objects and background detail."""

    length_s: Fraction
    n_actions: int
    n_objects: int
    background: float

    @property
    def difficulty(self) -> ClipDifficulty:
        """Return the difficulty of the clip: easy or hard.

        A clip is hard if it lasts more than `EASY_LENGTH_S` seconds, or if at least two of its
        other three measures (actions, objects, background) exceed their limits.
        """
        not_plain = (
            (self.n_actions > EASY_ACTIONS)
            + (self.n_objects > EASY_OBJECTS)
            + (self.background > EASY_BACKGROUND)
        )
        hard = self.length_s > EASY_LENGTH_S or not_plain >= _NOT_PLAIN
        return ClipDifficulty.HARD if hard else ClipDifficulty.EASY


def measure_clip_complexity(
    story: str, frames: Sequence[Rgb], *, length_s: Fraction
) -> ClipComplexity:
    """Return the four complexity measures of a clip from its description, frames and length."""
    # An object is identified by the last word of its name.
    heads = (name.split()[-1].lower() for name in _NAMED.findall(story))
    return ClipComplexity(
        length_s=length_s,
        n_actions=1 + len(_STEP.findall(story)),
        n_objects=len({head.removesuffix("s") for head in heads}),
        background=measure_background_detail(frames),
    )


def measure_background_detail(frames: Sequence[Rgb]) -> float:
    """Return the fraction of the median background that is not flat: 0 is plain, 1 is busy."""
    if not frames:
        raise InvalidValueError("a background needs a frame to be seen in. Give the sampled frames")
    small = [scale_down_picture(frame, _SMALL).astype(np.float32).mean(axis=2) for frame in frames]
    background = np.median(small, axis=0)
    mean = ndimage.uniform_filter(background, _BLOCK)
    spread = np.sqrt(np.maximum(ndimage.uniform_filter(background**2, _BLOCK) - mean**2, 0))
    return float(np.mean(spread > _FLAT_LEVELS))


CONDITION = Condition(sampling="uniform-8", prompt=f"storyboard-{digest(STORYBOARD.text)[:12]}")
"""Condition of the question. It contains the prompt's hash: a changed prompt changes every key."""
_INSTRUMENT = Instrument("storyboard", 1)


async def describe_clip(clip: Clip, reviewer: ReviewerWithPrices, *, asker: Asker) -> str | Failure:
    """Ask the model `reviewer` to describe the clip, a local file, and return its text as one paragraph."""
    question = Question(subject=clip.id, instrument=_INSTRUMENT, condition=CONDITION)
    reply = await asker.ask(question, [clip], reviewer, prompt=STORYBOARD.text)
    if isinstance(reply.outcome, Failure):
        return reply.outcome
    text = " ".join(quote_text_for_prompt(strip_thinking(reply.outcome.text)).split())
    return text or Failure(FailureReason.EMPTY_REPLY, "the model returned no description")


DESCRIBE = "describe"
_FACTS = TypeAdapter(ClipFacts)
_SMALL_PIXELS = 96


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipDescription:
    """Description of a clip, the model that wrote it, and the complexity and difficulty of the clip."""

    story: str
    teller: str
    diversity: ClipComplexity
    difficulty: ClipDifficulty


def run_describe_step(
    section: DescribeRecipeSection, job: CurationJob, state: CurationState
) -> CurationState:
    """Add difficulty and a model's description, also as a missing prompt, to each real segment."""
    access = job.context.access
    factory = section.opener(key_hosts=access.settings.key_hosts)
    settings = {"teller": factory.name, "condition": str(CONDITION)}
    stage = ClipDescriptionStage(factory, access, in_flight=section.max_connections)
    step = VersionedCurationStep(
        name=DESCRIBE, version=1, settings=settings, finds=TypeAdapter(ClipDescription)
    )
    segments = state.segments
    requests = ReiterableStream(
        lambda: (
            segment.subject(facts=to_json_values(segment.clip.facts))
            for segment in segments
            if segment.entry.label is Label.REAL
        )
    )
    descriptions = job.context.ask_stage(step, requests, stage)
    results = (next(descriptions) if s.entry.label is Label.REAL else None for s in segments)
    described = filter_segments(DESCRIBE, segments, results, _add_description)
    return state.after(job.directory.write(DESCRIBE, described))


def _add_description(segment: ClipSegment, description: ClipDescription) -> ClipSegment:
    entry = replace(
        segment.entry,
        prompt=segment.entry.prompt or description.story,
        difficulty=segment.entry.difficulty or description.difficulty.value,
    )
    return replace(
        segment, entry=entry, notes={**segment.notes, DESCRIBE: to_json_values(description)}
    )


class ClipDescriptionStage(MediaStage):
    """Stage that has a model describe each clip from eight frames, and measures the clip's complexity."""

    opened = MediaStage.opened | {"_asker", "_reviewer"}

    def __init__(
        self, factory: ReviewerFactory, access: ClipAccessSettings, *, in_flight: int
    ) -> None:
        super().__init__(access, WorkerResources.asking(factory, in_flight))
        self._opener = factory

    def setup(self) -> None:
        super().setup()
        self._asker = Asker(self._reader)
        self._open.callback(self._asker.close)
        self._reviewer = self._opener.open()

    async def __call__(self, row: Row) -> Row:
        facts = _FACTS.validate_python(json.loads(row["_given"])["facts"])
        with provide_local_clip_file(row["location"], self._access) as file:
            clip = Clip(id=row["clip"], location=str(file), facts=facts)
            description = await self._describe(clip, file)
        if isinstance(description, Failure):
            return convert_to_failed_row(row, description)
        return row | {"found": format_canonical_json(to_json_values(description))}

    async def _describe(self, clip: Clip, file: Path) -> ClipDescription | Failure:
        story = await describe_clip(clip, self._reviewer, asker=self._asker)
        if isinstance(story, Failure):
            return story
        frames = self._reader.frames(
            file, sampling=CONDITION.sampling, encoding="rgb24", longest_side=_SMALL_PIXELS
        )
        if isinstance(frames, Failure):
            return frames
        pictures = [frame.rgb() for frame in frames.frames]
        diversity = measure_clip_complexity(story, pictures, length_s=clip.facts.video.duration_s)
        return ClipDescription(
            story=story,
            teller=self._opener.name,
            diversity=diversity,
            difficulty=diversity.difficulty,
        )

    async def close(self) -> None:
        await self._reviewer.reviewer.close()
        super().close()


MAX_CLUSTERS = 20
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
    vectors: Vectors, *, seed: int, max_clusters: int = MAX_CLUSTERS
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
        model: Any = _KMEANS.load()(n_clusters=k, n_init=_STARTS, random_state=seed)
        labels: npt.NDArray[np.intp] = model.fit_predict(rows)
        silhouettes[k] = float(_SILHOUETTE.load()(rows, labels))
        if all(silhouettes[k] > silhouettes[smaller] + _SAME for smaller in range(2, k)):
            best = labels
    # Numbered by size, then by first name, because the numbers of k-means are arbitrary.
    members: dict[int, list[str]] = {}
    for name, label in zip(names, best.tolist(), strict=True):
        members.setdefault(label, []).append(name)
    ordered = sorted(members.values(), key=lambda group: (-len(group), group[0]))
    groups = {name: number for number, group in enumerate(ordered) for name in group}
    return DescriptionClusters(groups=groups, silhouettes=silhouettes)


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
    requests = ReiterableStream(
        lambda: (
            segment.subject(story=segment.notes[DESCRIBE]["story"])
            for segment in segments
            if DESCRIBE in segment.notes
        )
    )
    decisions = job.context.run_cached(
        step, requests, lambda: decide_cluster_sampling(requests, seed=seed)
    )
    results = (next(decisions) if DESCRIBE in segment.notes else None for segment in segments)

    def apply(
        segment: ClipSegment, decision: ClusterSamplingDecision
    ) -> ClipSegment | ExcludedSegment:
        if decision.kept:
            return replace(segment, notes={**segment.notes, CLUSTER: decision.group})
        detail = f"group {decision.group} has more clips than the smallest one"
        return segment.left_out(CLUSTER, "not-drawn", detail)

    sampled = filter_segments(CLUSTER, segments, results, apply)
    return state.after(job.directory.write(CLUSTER, sampled))


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
