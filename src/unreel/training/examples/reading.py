"""Training and held-out examples from the `[[data]]` sections of a recipe.

Held out are whole scenes with all duplicates, found by stored hashes and fingerprints.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from unreel.benchmarks.entry import REASONS_SHOWN, Entry, Rejected
from unreel.benchmarks.loader import Benchmark, open_benchmark
from unreel.benchmarks.questions import (
    PlannedQuestion,
    ProbedEntry,
    QuestionScope,
    UnreadableClip,
    plan_questions,
)
from unreel.benchmarks.statistics import BenchmarkIdentity, BenchmarkStats
from unreel.core.chunks import iter_chunks
from unreel.core.clip import Clip, get_first_creator
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError, InvalidValueError, UnreadableSourceError
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.engine.clip_facts import CLIPS, ClipProbeStage, StoredClipFacts, iter_clip_file_rows
from unreel.engine.location import StorageLocation
from unreel.engine.progress import OnStep
from unreel.engine.run import run_pending_questions
from unreel.engine.schema import TableSchema
from unreel.engine.stage import MediaStage, Row, WorkerResources, convert_to_failed_row
from unreel.engine.storage_access import ClipAccessSettings, provide_local_clip_file
from unreel.engine.table import LanceTable
from unreel.media.fingerprint import (
    ClipFingerprint,
    InMemoryFingerprints,
    compute_clip_fingerprint,
    find_frame_borders,
)
from unreel.media.near_duplicates import NearDuplicateClipPair, find_near_duplicates
from unreel.protocols.box_space import PERMILLE, BoxSpace
from unreel.protocols.protocol import get_protocol
from unreel.stats.clusters import group_connected_names
from unreel.training.examples.example import TrainingExample
from unreel.training.recipe import TrainingDataSection, TrainRecipe, UnseenBenchmarkSection

if TYPE_CHECKING:
    from unreel.core.question import Question


PRINTS = TableSchema(name="prints", version=1, columns={"print": "string"})
"""Table of clip fingerprints: `print` is the fingerprint as JSON; the key is the clip id."""
_PRINT = TypeAdapter(ClipFingerprint)


class ClipFingerprintStage(MediaStage):
    """Pipeline stage that adds the fingerprint of a clip to its row."""

    def __init__(self, access: ClipAccessSettings, *, in_flight: int = 2) -> None:
        super().__init__(access, WorkerResources(in_flight=in_flight))

    def __call__(self, row: Row) -> Row:
        with provide_local_clip_file(row["_location"], self._access) as file:
            scan = self._reader.scan(file)
        if isinstance(scan, Failure):
            return convert_to_failed_row(row, scan)
        fingerprint = compute_clip_fingerprint(scan, find_frame_borders(scan.picked))
        return row | {"print": _PRINT.dump_json(fingerprint).decode()}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingClipCache:
    """Stored tables of the properties and fingerprints of training clips, in `folder`."""

    folder: Path
    access: ClipAccessSettings
    on_step: OnStep = lambda _part, _progress: None

    def find(
        self, benchmark: Benchmark, entries: Sequence[Entry], *, cleaned: bool = False
    ) -> Iterator[ProbedEntry[Clip]]:
        """Probe the files of the benchmark `entries`, and yield each entry with its clip properties."""
        # Different benchmarks may use the same file names.
        code = digest("benchmark", str(benchmark.root.absolute()))[:16]
        table = self._table(f"clips-{code}", CLIPS)
        run_pending_questions(
            iter_clip_file_rows(benchmark, entries, self.access, cleaned=cleaned),
            [ClipProbeStage(self.access)],
            table=table,
            on_progress=lambda progress: self.on_step("clips", progress),
        )
        yield from StoredClipFacts(table).find_files(benchmark, entries, cleaned=cleaned)

    def compare(
        self, clips: Sequence[Clip]
    ) -> tuple[tuple[NearDuplicateClipPair, ...], dict[str, int]]:
        """Find all pairs of `clips` with the same content; clips are identified by their id.

        Also return the number of clips that could not be decoded, by reason.
        """
        locations = {clip.id: clip.location for clip in clips}
        table = self._table("prints", PRINTS)
        run_pending_questions(
            ({"key": key, "_location": location} for key, location in locations.items()),
            [ClipFingerprintStage(self.access)],
            table=table,
            on_progress=lambda progress: self.on_step("fingerprints", progress),
        )
        prints: list[tuple[str, ClipFingerprint]] = []
        n_undecoded: Counter[str] = Counter()
        keys = sorted(locations)
        for chunk in iter_chunks(keys):
            for row in table.get(chunk):
                reason = row["failure_reason"]
                if reason is None:
                    prints.append((row["key"], _PRINT.validate_json(row["print"])))
                else:
                    n_undecoded[reason] += 1
        pairs = find_near_duplicates(InMemoryFingerprints(sorted(prints)), all_pairs=True)
        return tuple(pairs), dict(n_undecoded)

    def _table(self, name: str, schema: TableSchema) -> LanceTable:
        OutputDirectory(self.folder).make()
        return LanceTable(StorageLocation(str(self.folder)) / f"{name}.lance", schema)


_MAX_LISTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenTestClip:
    """A test clip that must not be trained on."""

    name: str
    benchmark: str
    source: str
    clip: Clip


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingLeak:
    """A training clip and a test clip with the same bytes, source or content."""

    trained: str
    unseen: str
    benchmark: str
    why: str
    """Kind of match: `same bytes`, `same source` or `near-duplicate`."""

    def __str__(self) -> str:
        return f"{self.trained} and {self.unseen} of {self.benchmark} ({self.why})"


def find_training_leaks(
    trained: Iterable[TrainingExample],
    unseen: Sequence[UnseenTestClip],
    pairs: Iterable[NearDuplicateClipPair],
) -> tuple[TrainingLeak, ...]:
    """Return each test clip in `unseen` that is also in the training data, with its strongest match."""
    by_clip: dict[str, str] = {}
    by_source: dict[str, str] = {}
    for example in trained:
        by_clip |= {clip.id: example.name for clip in example.clips}
        if example.source:
            by_source.setdefault(example.source, example.name)
    duplicates: dict[str, str] = {}
    for match in pairs:
        if match.first in by_clip:
            duplicates.setdefault(match.second, by_clip[match.first])
        if match.second in by_clip:
            duplicates.setdefault(match.first, by_clip[match.second])
    leaks = []
    for clip in unseen:
        ties = {
            "same bytes": by_clip.get(clip.clip.id),
            "near-duplicate": duplicates.get(clip.clip.id),
            "same source": by_source.get(clip.source),
        }
        for kind, trained_name in ties.items():
            if trained_name is not None:
                leaks.append(
                    TrainingLeak(
                        trained=trained_name, unseen=clip.name, benchmark=clip.benchmark, why=kind
                    )
                )
                break
    return tuple(leaks)


def require_no_training_leaks(leaks: Sequence[TrainingLeak]) -> None:
    """Raise `InvalidSettingError` if a test clip is in the training data."""
    if not leaks:
        return
    listed = "; ".join(map(str, leaks[:_MAX_LISTED]))
    more = f"; and {len(leaks) - _MAX_LISTED} more" if len(leaks) > _MAX_LISTED else ""
    raise InvalidSettingError(
        "holdout.benchmarks",
        f"{len(leaks)} test clips are also in the training data: {listed}{more}",
        "Remove them from one side, name another split, or train anyway with --accept-leak",
    )


_SOURCE = "source "
_CLIP = "clip "


def group_related_examples(
    examples: Sequence[TrainingExample], kin: Iterable[tuple[str, str]]
) -> list[str]:
    """Return the name of each example's group, which is held out or trained on as a unit.

    A group joins clips with the same source, the same bytes or the same content. `kin` contains
    pairs of ids of clips with the same content. A group has the name of one of its sources; added clips
    do not change the name unless they connect the group with other sources.
    """
    # A clip without a scene is its own scene; a twin made from it has its name as the source.
    ties = [
        [_SOURCE + (example.source or example.name), *(_CLIP + clip.id for clip in example.clips)]
        for example in examples
    ]
    names = sorted({tie for keys in ties for tie in keys})
    known = set(names)
    pairs = [(keys[0], key) for keys in ties for key in keys[1:]]
    pairs += [
        (_CLIP + first, _CLIP + second)
        for first, second in kin
        if _CLIP + first in known and _CLIP + second in known
    ]
    bundle: dict[str, str] = {}
    for group in group_connected_names(names, pairs):
        # The source of lowest hash, so that larger groups are not held out more often.
        sources = (tie.removeprefix(_SOURCE) for tie in group if tie.startswith(_SOURCE))
        name = min(sources, key=lambda source: digest("bundle", source))
        bundle |= dict.fromkeys(group, name)
    return [bundle[keys[0]] for keys in ties]


def sample_held_out_groups(bundles: Iterable[str], *, share: float, seed: int) -> frozenset[str]:
    """Sample the groups that are held out, and return their names.

    A group is selected by the hash of its name, so that a new group does not affect the others. If
    `share` is above 0, at least one group is held out and at least one is left for training. Raise
    `InvalidSettingError` if there is only one group.
    """
    placed = sorted({(digest("held out", str(seed), name), name) for name in bundles})
    if share == 0 or not placed:
        return frozenset()
    if len(placed) == 1:
        raise InvalidSettingError(
            "holdout.share",
            f"all clips belong to one scene, {placed[0][1]!r}",
            "Add clips of other scenes, name a held-out split (holdout.split), or set "
            "holdout.share=0 to train on all clips",
        )
    n_held = sum(int(hashed[:13], 16) < share * 16**13 for hashed, _ in placed)
    n_held = min(max(n_held, 1), len(placed) - 1)
    return frozenset(name for _, name in placed[:n_held])


_ANY_SPACE = BoxSpace("permille", PERMILLE, PERMILLE)
"""Any valid box space: whether an answer can be a target does not depend on the units of its boxes."""
_REASONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedExampleCounts:
    """Number of rows and clips that give no training example, by reason, and the first of them."""

    reasons: Mapping[str, int]
    first: tuple[Rejected, ...]

    @property
    def n(self) -> int:
        """Return the number of all skipped rows and clips."""
        return sum(self.reasons.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingDataSummary:
    """Benchmark, split, licences and number of examples of one `[[data]]` section."""

    benchmark: str
    split: str | None
    identity: BenchmarkIdentity | None
    """Identity of the benchmark, which changes with its content."""
    licences: tuple[str, ...]
    """Licences of the clips, sorted; includes "" if a clip names none."""
    n_examples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingExampleSet:
    """All training and held-out examples of a recipe; no clip is decoded yet."""

    train: tuple[TrainingExample, ...]
    held_out: tuple[TrainingExample, ...]
    weights: tuple[float, ...]
    """Weights of the `[[data]]` sections, in the order of the recipe."""
    data: tuple[TrainingDataSummary, ...]
    left_out: SkippedExampleCounts
    leaks: tuple[TrainingLeak, ...] = ()
    """Leaks that the user accepted."""
    not_compared: Mapping[str, int]
    """Number of clips whose content could not be compared, by reason."""

    @property
    def digest(self) -> str:
        """Return the hash of all examples, truths, answers, weights and parts: other data, other hash."""
        lines = []
        for part, examples in (("train", self.train), ("held out", self.held_out)):
            for example in examples:
                kind = get_protocol(example.question.instrument.protocol).truths.kind
                truth = TypeAdapter(kind).dump_json(example.truth).decode()
                fields = (part, example.data, example.key, truth, example.answer or "")
                lines.append(" ".join(map(str, fields)).rstrip())
        return digest("examples", *map(str, self.weights), *sorted(lines))


def read_training_examples(
    recipe: TrainRecipe,
    *,
    access: ClipAccessSettings,
    folder: Path,
    accept_leak: bool = False,
    on_step: OnStep = lambda _part, _progress: None,
) -> TrainingExampleSet:
    """Read the training and held-out examples of the recipe's benchmarks.

    Clips are hashed and probed, and decoded once if near-duplicates are searched; results are
    cached in `folder`, so that a second call is fast. Raise `InvalidSettingError` if a benchmark is
    not named, nothing can be held out, or a training clip is also a test clip, or
    `UnreadableSourceError` if a benchmark gives no example.
    """
    cache = TrainingClipCache(folder=folder, access=access, on_step=on_step)
    collector = _ExampleCollector(recipe, cache)
    for i, section in enumerate(recipe.data):
        collector.take(i, section)
    unseen = [
        each
        for section in recipe.holdout.benchmarks
        for each in _iter_unseen_test_clips(recipe, section, cache)
    ]
    pairs: tuple[NearDuplicateClipPair, ...] = ()
    not_compared: dict[str, int] = {}
    if recipe.holdout.near_duplicates:
        clips = [clip for example in collector.all for clip in example.clips]
        pairs, not_compared = cache.compare([*clips, *(each.clip for each in unseen)])
    train, held_out = collector.split(pairs)
    leaks = find_training_leaks(train, unseen, pairs)
    if not accept_leak:
        require_no_training_leaks(leaks)
    return TrainingExampleSet(
        train=tuple(train),
        held_out=tuple(held_out),
        weights=tuple(section.weight for section in recipe.data),
        data=tuple(collector.data),
        left_out=SkippedExampleCounts(
            reasons=dict(+collector.reasons), first=tuple(collector.first)
        ),
        leaks=leaks,
        not_compared=not_compared,
    )


class _ExampleCollector:
    """Collector of the examples of all benchmarks, with counts of rows that give no example."""

    def __init__(self, recipe: TrainRecipe, cache: TrainingClipCache) -> None:
        self._recipe, self._cache = recipe, cache
        self._planned: dict[Question, PlannedQuestion[Clip]] = {}
        self.reasons: Counter[str] = Counter()
        self.first: list[Rejected] = []
        self._train: list[TrainingExample] = []
        self._held_out: list[TrainingExample] = []
        """Examples of the split that is held out."""
        self.data: list[TrainingDataSummary] = []

    @property
    def all(self) -> list[TrainingExample]:
        return [*self._train, *self._held_out]

    def take(self, index: int, section: TrainingDataSection) -> None:
        """Read the examples of the benchmark in `section`, the recipe's `[[data]]` at `index`."""
        benchmark = _open_section_benchmark(section, self._cache.access, section.path)
        reading = BenchmarkStats()
        entries = list(reading.watch(benchmark))
        split_name = self._recipe.holdout.split
        split = section.split if reading.splits - {""} else None
        own = [e for e in entries if split in {None, e.split} and e.split != split_name]
        if not own:
            raise reading.nothing(str(section.path), section.split)
        for rejected in reading.rejected:
            self._leave(rejected)
        self.reasons["row that cannot be used"] += reading.n_rejected - len(reading.rejected)
        n_before = len(self.all)
        self._train += self._ask(index, section, benchmark, own)
        if len(self.all) == n_before:
            raise UnreadableSourceError(
                str(section.path),
                f"none of its {len(own):,} clips gives an example",
                f"The first is {self.first[0]}" if self.first else "Check its truth",
            )
        if split_name is not None:
            held_out = [entry for entry in entries if entry.split == split_name]
            if not held_out:
                raise reading.nothing(str(section.path), split_name)
            self._held_out += self._ask(index, section, benchmark, held_out)
        self.data.append(
            TrainingDataSummary(
                benchmark=str(section.path),
                split=section.split,
                identity=reading.identity,
                licences=tuple(sorted({entry.licence for entry in own})),
                n_examples=len(self.all) - n_before,
            )
        )

    def split(
        self, pairs: Iterable[NearDuplicateClipPair]
    ) -> tuple[list[TrainingExample], list[TrainingExample]]:
        """Return the training examples and the held-out examples; no scene is in both."""
        groups = group_related_examples(self.all, [(pair.first, pair.second) for pair in pairs])
        grouped = list(zip(self.all, groups, strict=True))
        holdout = self._recipe.holdout
        if holdout.split is None:
            sampled = sample_held_out_groups(groups, share=holdout.share, seed=self._recipe.seed)
            return (
                [example for example, group in grouped if group not in sampled],
                [example for example, group in grouped if group in sampled],
            )
        n_train = len(self._train)
        trained = set(groups[:n_train])
        held_out = []
        for example, group in grouped[n_train:]:
            if group in trained:
                reason = "a clip of the held-out split that shows a scene that is trained on"
                self._leave(Rejected(example.name, reason))
            else:
                held_out.append(example)
        if not held_out:
            raise InvalidSettingError(
                "holdout.split",
                "every clip of it shows a scene that is trained on",
                "Name another split, or leave it out: holdout.share draws whole scenes",
            )
        return self._train, held_out

    def _ask(
        self,
        index: int,
        section: TrainingDataSection,
        benchmark: Benchmark,
        entries: Sequence[Entry],
    ) -> list[TrainingExample]:
        scope = QuestionScope(
            instrument=section.instrument.instrument,
            conditions=(section.resolved_condition,),
            seed=self._recipe.seed,
        )
        probed = self._cache.find(benchmark, entries, cleaned=scope.shows_cleaned)
        examples: list[TrainingExample] = []
        for planned in plan_questions(probed, scope):
            match planned:
                case Rejected():
                    self._leave(planned)
                case UnreadableClip():
                    gone = Rejected(planned.name, str(planned.failure))
                    self._leave(gone, planned.failure.reason.value)
                case PlannedQuestion():
                    examples += self._teach(index, planned)
        return examples

    def _teach(self, index: int, planned: PlannedQuestion[Clip]) -> Iterator[TrainingExample]:
        """Yield an example per annotation row of the question; skip and count rows without answers."""
        question = planned.question
        if question in self._planned:
            before = self._planned[question]
            more = "" if planned.truths == before.truths else " with another truth"
            reason = f"a duplicate question about the same bytes{more}. See {before.name}"
            self._leave(Rejected(planned.name, reason))
            return
        self._planned[question] = planned
        wording = get_protocol(question.instrument.protocol).wording
        parts = (str(question.instrument), str(question.condition))
        for row, truth in enumerate(planned.truths):
            try:
                wording.teach(truth, question.condition.prompt, _ANY_SPACE)
            except InvalidValueError as error:
                self._leave(Rejected(planned.name, str(error)))
                continue
            yield TrainingExample(
                key=digest("example", *question.shown, *parts, str(row)),
                name=planned.name,
                question=question,
                clips=planned.clips,
                truth=truth,
                source=planned.source,
                creator=get_first_creator(*planned.origins),
                data=index,
            )

    def _leave(self, rejected: Rejected, reason: str = "") -> None:
        """Count the skipped row `rejected` under `reason`, or under the first sentence of its own reason."""
        reason = reason or rejected.why.partition(". ")[0]
        known = reason in self.reasons or len(self.reasons) < _REASONS
        self.reasons[reason if known else "other reasons"] += 1
        if len(self.first) < REASONS_SHOWN:
            self.first.append(rejected)


def _open_section_benchmark(
    section: TrainingDataSection | UnseenBenchmarkSection, access: ClipAccessSettings, path: Path
) -> Benchmark:
    mapping = section.mapping or None
    return open_benchmark(path, section.layout, mapping=mapping, outside=access.outside)


def _iter_unseen_test_clips(
    recipe: TrainRecipe, section: UnseenBenchmarkSection, cache: TrainingClipCache
) -> Iterator[UnseenTestClip]:
    """Yield every test clip of `section`: of its benchmark, or of a split of the training data."""
    if section.benchmark is None:
        benchmarks = [
            _open_section_benchmark(data, cache.access, data.path)
            for data in {data.path: data for data in recipe.data}.values()
        ]
    else:
        path = Path(section.benchmark)
        benchmarks = [_open_section_benchmark(section, cache.access, path)]
    for benchmark in benchmarks:
        stats, split = BenchmarkStats(), section.split
        entries = [entry for entry in stats.watch(benchmark) if split in {None, entry.split}]
        if not entries:
            raise stats.nothing(str(benchmark.root), split)
        for probed in cache.find(benchmark, entries, cleaned=any(e.cleaned for e in entries)):
            entry, root = probed.entry, str(benchmark.root)
            for clip in (probed.clip, probed.cleaned):
                if isinstance(clip, Clip):
                    yield UnseenTestClip(
                        name=entry.name, benchmark=root, source=entry.group, clip=clip
                    )
