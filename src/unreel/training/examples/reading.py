"""Training and held-out examples from the `[[data]]` sections of a recipe."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter

from unreel.benchmarks.entry import REASONS_SHOWN, Entry, Rejected
from unreel.benchmarks.loader import Benchmark, open_benchmark
from unreel.benchmarks.questions import (
    PlannedQuestion,
    QuestionScope,
    UnreadableClip,
    plan_questions,
)
from unreel.benchmarks.statistics import BenchmarkIdentity, BenchmarkStats
from unreel.core.clip import Clip, get_first_creator
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError, InvalidValueError, UnreadableSourceError
from unreel.engine.progress import OnStep
from unreel.engine.storage_access import ClipAccessSettings
from unreel.protocols.box_space import PERMILLE, BoxSpace
from unreel.protocols.protocol import get_protocol
from unreel.training.examples.example import TrainingExample
from unreel.training.examples.held_out import (
    DuplicateSearchResult,
    TrainingClipCache,
    TrainingLeak,
    UnseenTestClip,
    find_training_leaks,
    group_related_examples,
    require_no_training_leaks,
    sample_held_out_groups,
)
from unreel.training.recipe import TrainingDataSection, TrainRecipe, UnseenBenchmarkSection

if TYPE_CHECKING:
    from unreel.core.question import Question

_ANY_SPACE: Final = BoxSpace("permille", PERMILLE, PERMILLE)
"""Any valid box space: whether an answer can be a target does not depend on the units of its boxes."""
_REASONS: Final = 100


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
        lines = (
            f"{side} {example.data} {example.key} {_format_truth_json(example)} {example.answer or ''}".rstrip()
            for side, examples in (("train", self.train), ("held out", self.held_out))
            for example in examples
        )
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
    cached in `folder`, so that a second call is fast.

    Raises:
        InvalidSettingError: A benchmark is not named, nothing can be held out, or a training clip
            is also a test clip.
        UnreadableSourceError: A benchmark gives no example.
    """
    shelf = TrainingClipCache(folder=folder, access=access, on_step=on_step)
    gathering = _ExampleCollector(recipe, shelf)
    for i, section in enumerate(recipe.data):
        gathering.take(i, section)
    unseen = [
        each
        for section in recipe.holdout.benchmarks
        for each in _iter_unseen_test_clips(recipe, section, shelf)
    ]
    compared = DuplicateSearchResult(matches=(), unlooked={})
    if recipe.holdout.near_duplicates:
        clips = [clip for example in gathering.all for clip in example.clips]
        compared = shelf.compare([*clips, *(each.clip for each in unseen)])
    train, held_out = gathering.part(compared)
    leaks = find_training_leaks(train, unseen, compared.matches)
    if not accept_leak:
        require_no_training_leaks(leaks)
    return TrainingExampleSet(
        train=tuple(train),
        held_out=tuple(held_out),
        weights=tuple(section.weight for section in recipe.data),
        data=tuple(gathering.data),
        left_out=gathering.left_out(),
        leaks=leaks,
        not_compared=compared.unlooked,
    )


class _ExampleCollector:
    """Collector of the examples of all benchmarks, with counts of rows that give no example."""

    def __init__(self, recipe: TrainRecipe, shelf: TrainingClipCache) -> None:
        self._recipe, self._shelf = recipe, shelf
        self._asked: dict[Question, PlannedQuestion[Clip]] = {}
        self._reasons: Counter[str] = Counter()
        self._first: list[Rejected] = []
        self._taken: list[TrainingExample] = []
        self._apart: list[TrainingExample] = []
        """Examples of the split that is held out."""
        self.data: list[TrainingDataSummary] = []

    @property
    def all(self) -> list[TrainingExample]:
        return [*self._taken, *self._apart]

    def take(self, index: int, section: TrainingDataSection) -> None:
        """Read the examples of the benchmark in `section`, the recipe's `[[data]]` at `index`."""
        benchmark, reading = (
            _open_section_benchmark(section, self._shelf.access, section.path),
            BenchmarkStats(),
        )
        entries = list(reading.watch(benchmark))
        split_name = self._recipe.holdout.split
        split = section.split if reading.splits - {""} else None
        own = [e for e in entries if split in {None, e.split} and e.split != split_name]
        if not own:
            raise reading.nothing(str(section.path), section.split)
        for rejected in reading.rejected:
            self._leave(rejected)
        self._reasons["row that cannot be used"] += reading.n_rejected - len(reading.rejected)
        n_before = len(self.all)
        self._taken += self._ask(index, section, benchmark, own)
        if len(self.all) == n_before:
            source, problem = (
                str(section.path),
                f"none of its {len(own):,} clips gives an example",
            )
            remedy = f"The first is {self._first[0]}" if self._first else "Check its truth"
            raise UnreadableSourceError(source, problem, remedy)
        if split_name is not None:
            apart = [entry for entry in entries if entry.split == split_name]
            if not apart:
                raise reading.nothing(str(section.path), split_name)
            self._apart += self._ask(index, section, benchmark, apart)
        self.data.append(
            TrainingDataSummary(
                benchmark=str(section.path),
                split=section.split,
                identity=reading.identity,
                licences=tuple(sorted({entry.licence for entry in own})),
                n_examples=len(self.all) - n_before,
            )
        )

    def part(
        self, compared: DuplicateSearchResult
    ) -> tuple[list[TrainingExample], list[TrainingExample]]:
        """Return the training examples and the held-out examples; no scene is in both."""
        bundles = group_related_examples(
            self.all, [(match.first, match.second) for match in compared.matches]
        )
        bound = list(zip(self.all, bundles, strict=True))
        if self._recipe.holdout.split is None:
            groups = sample_held_out_groups(
                bundles, share=self._recipe.holdout.share, seed=self._recipe.seed
            )
            return [e for e, b in bound if b not in groups], [e for e, b in bound if b in groups]
        trained, apart = bound[: len(self._taken)], bound[len(self._taken) :]
        learned = {bundle for _, bundle in trained}
        for example, bundle in apart:
            if bundle in learned:
                reason = "it is of the split that is held out, and shows a scene that is trained on"
                self._leave(Rejected(example.name, reason))
        apart_examples = [example for example, bundle in apart if bundle not in learned]
        if not apart_examples:
            setting, problem = "holdout.split", "every clip of it shows a scene that is trained on"
            remedy = "Name another split, or leave it out: holdout.share draws whole scenes"
            raise InvalidSettingError(setting, problem, remedy)
        return [example for example, _ in trained], apart_examples

    def left_out(self) -> SkippedExampleCounts:
        """Return the counts of clips without an example."""
        return SkippedExampleCounts(reasons=dict(+self._reasons), first=tuple(self._first))

    def _ask(
        self,
        index: int,
        section: TrainingDataSection,
        benchmark: Benchmark,
        entries: Sequence[Entry],
    ) -> list[TrainingExample]:
        scope = QuestionScope(
            instrument=section.instrument.instrument,
            conditions=(section.asked,),
            seed=self._recipe.seed,
        )
        probed = self._shelf.find(benchmark, entries, cleaned=scope.shows_cleaned)
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
        if question in self._asked:
            before = self._asked[question]
            more = "" if planned.truths == before.truths else " with another truth"
            reason = f"a duplicate question about the same bytes{more}. See {before.name}"
            self._leave(Rejected(planned.name, reason))
            return
        self._asked[question] = planned
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
        known = reason in self._reasons or len(self._reasons) < _REASONS
        self._reasons[reason if known else "other reasons"] += 1
        if len(self._first) < REASONS_SHOWN:
            self._first.append(rejected)


def _open_section_benchmark(
    section: TrainingDataSection | UnseenBenchmarkSection, access: ClipAccessSettings, path: Path
) -> Benchmark:
    mapping = section.mapping or None
    return open_benchmark(path, section.layout, mapping=mapping, outside=access.outside)


def _iter_unseen_test_clips(
    recipe: TrainRecipe, section: UnseenBenchmarkSection, shelf: TrainingClipCache
) -> Iterator[UnseenTestClip]:
    """Yield every test clip of `section`: of its benchmark, or of a split of the training data."""
    if section.benchmark is None:
        for data in {data.path: data for data in recipe.data}.values():
            yield from _iter_benchmark_clips(
                _open_section_benchmark(data, shelf.access, data.path), section.split, shelf
            )
        return
    yield from _iter_benchmark_clips(
        _open_section_benchmark(section, shelf.access, Path(section.benchmark)),
        section.split,
        shelf,
    )


def _iter_benchmark_clips(
    benchmark: Benchmark, split: str | None, shelf: TrainingClipCache
) -> Iterator[UnseenTestClip]:
    reading = BenchmarkStats()
    entries = [entry for entry in reading.watch(benchmark) if split in {None, entry.split}]
    if not entries:
        raise reading.nothing(str(benchmark.root), split)
    for probed in shelf.find(benchmark, entries, cleaned=any(e.cleaned for e in entries)):
        for clip in (probed.clip, probed.cleaned):
            if isinstance(clip, Clip):
                entry = probed.entry
                yield UnseenTestClip(
                    name=entry.name, benchmark=str(benchmark.root), source=entry.group, clip=clip
                )


def _format_truth_json(example: TrainingExample) -> str:
    kind = get_protocol(example.question.instrument.protocol).truths.kind
    return TypeAdapter(kind).dump_json(example.truth).decode()
