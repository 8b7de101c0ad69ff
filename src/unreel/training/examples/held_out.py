"""Held-out data: whole scenes with all duplicates, found by stored hashes and fingerprints."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from unreel.benchmarks.entry import Entry
from unreel.benchmarks.loader import Benchmark
from unreel.benchmarks.questions import ProbedEntry
from unreel.core.chunks import iter_chunks
from unreel.core.clip import Clip
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError
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
from unreel.stats.clusters import group_connected_names
from unreel.training.examples.example import TrainingExample

PRINTS: Final = TableSchema(name="prints", version=1, columns={"print": "string"})
"""Table of clip fingerprints: `print` is the fingerprint as JSON; the key is the clip id."""
_PRINT: Final = TypeAdapter(ClipFingerprint)


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
class DuplicateSearchResult:
    """Pairs of clips with the same content, and counts of clips that could not be compared."""

    matches: tuple[NearDuplicateClipPair, ...]
    unlooked: Mapping[str, int]
    """Number of clips that could not be decoded, by reason; these are compared by their bytes only."""


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

    def compare(self, clips: Sequence[Clip]) -> DuplicateSearchResult:
        """Find all pairs of `clips` with the same content; clips are identified by their id."""
        locations = {clip.id: clip.location for clip in clips}
        table = self._table("prints", PRINTS)
        run_pending_questions(
            ({"key": key, "_location": location} for key, location in locations.items()),
            [ClipFingerprintStage(self.access)],
            table=table,
            on_progress=lambda progress: self.on_step("fingerprints", progress),
        )
        prints: list[tuple[str, ClipFingerprint]] = []
        unlooked: dict[str, int] = {}
        keys = sorted(locations)
        for chunk in iter_chunks(keys):
            for row in table.get(chunk):
                reason = row["failure_reason"]
                if reason is None:
                    prints.append((row["key"], _PRINT.validate_json(row["print"])))
                else:
                    unlooked[reason] = unlooked.get(reason, 0) + 1
        matches = find_near_duplicates(InMemoryFingerprints(sorted(prints)), all_pairs=True)
        return DuplicateSearchResult(matches=tuple(matches), unlooked=unlooked)

    def _table(self, name: str, schema: TableSchema) -> LanceTable:
        OutputDirectory(self.folder).make()
        return LanceTable(StorageLocation(str(self.folder)) / f"{name}.lance", schema)


_TOLD: Final = 5


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
    matches: Iterable[NearDuplicateClipPair],
) -> tuple[TrainingLeak, ...]:
    """Return each test clip in `unseen` that is also in the training data, with its strongest match."""
    by_clip: dict[str, str] = {}
    by_source: dict[str, str] = {}
    for example in trained:
        by_clip |= {clip.id: example.name for clip in example.clips}
        if example.source:
            by_source.setdefault(example.source, example.name)
    alike = _map_similar_clips(matches, by_clip)
    leaks = []
    for clip in unseen:
        ties = {
            "same bytes": by_clip.get(clip.clip.id),
            "near-duplicate": alike.get(clip.clip.id),
            "same source": by_source.get(clip.source),
        }
        tie = next((tie for tie, name in ties.items() if name is not None), None)
        if tie is not None:
            leaks.append(
                TrainingLeak(
                    trained=ties[tie] or "", unseen=clip.name, benchmark=clip.benchmark, why=tie
                )
            )
    return tuple(leaks)


def require_no_training_leaks(leaks: Sequence[TrainingLeak]) -> None:
    """Raise `InvalidSettingError` if a test clip is in the training data."""
    if not leaks:
        return
    setting = "holdout.benchmarks"
    listed = "; ".join(map(str, leaks[:_TOLD]))
    more = f"; and {len(leaks) - _TOLD} more" if len(leaks) > _TOLD else ""
    problem = f"{len(leaks)} test clips are also in the training data: {listed}{more}"
    remedy = "Remove them from one side, name another split, or train anyway with --accept-leak"
    raise InvalidSettingError(setting, problem, remedy)


def _map_similar_clips(
    matches: Iterable[NearDuplicateClipPair], by_clip: Mapping[str, str]
) -> dict[str, str]:
    """Return, by clip id, the name of a training example with the same content."""
    alike: dict[str, str] = {}
    for match in matches:
        if match.first in by_clip:
            alike.setdefault(match.second, by_clip[match.first])
        if match.second in by_clip:
            alike.setdefault(match.first, by_clip[match.second])
    return alike


_SOURCE: Final = "source "
_CLIP: Final = "clip "


def group_related_examples(
    examples: Sequence[TrainingExample], kin: Iterable[tuple[str, str]]
) -> list[str]:
    """Return the name of each example's group, which is held out or trained on as a unit.

    A group joins clips with the same source, the same bytes or the same content. `kin` contains
    pairs of ids of clips with the same content. A group has the name of one of its sources; added clips
    do not change the name unless they connect the group with other sources.
    """
    ties = [_list_group_keys(example) for example in examples]
    names = sorted({tie for keys in ties for tie in keys})
    known = set(names)
    pairs = [(keys[0], key) for keys in ties for key in keys[1:]]
    pairs += [
        (_CLIP + first, _CLIP + second)
        for first, second in kin
        if _CLIP + first in known and _CLIP + second in known
    ]
    bundle = {
        tie: _select_group_name(group)
        for group in group_connected_names(names, pairs)
        for tie in group
    }
    return [bundle[keys[0]] for keys in ties]


def sample_held_out_groups(bundles: Iterable[str], *, share: float, seed: int) -> frozenset[str]:
    """Sample the groups that are held out, and return their names.

    A group is selected by the hash of its name, so that a new group does not affect the others.
    If `share` is above 0, at least one group is held out and at least one is left for training.

    Raises:
        InvalidSettingError: There is only one group.
    """
    placed = sorted({(digest("held out", str(seed), name), name) for name in bundles})
    if share == 0 or not placed:
        return frozenset()
    if len(placed) == 1:
        setting, problem = "holdout.share", f"all clips belong to one scene, {placed[0][1]!r}"
        remedy = (
            "Add clips of other scenes, name a held-out split (holdout.split), or set "
            "holdout.share=0 to train on all clips"
        )
        raise InvalidSettingError(setting, problem, remedy)
    n_held = sum(int(hashed[:13], 16) < share * 16**13 for hashed, _ in placed)
    n_held = min(max(n_held, 1), len(placed) - 1)
    return frozenset(name for _, name in placed[:n_held])


def _list_group_keys(example: TrainingExample) -> list[str]:
    ties = [_CLIP + clip.id for clip in example.clips]
    # A clip without a scene is its own scene; a twin made from it has its name as the source.
    return [_SOURCE + (example.source or example.name), *ties]


def _select_group_name(group: Sequence[str]) -> str:
    """Return the source of lowest hash, so that larger groups are not held out more often."""
    sources = (tie.removeprefix(_SOURCE) for tie in group if tie.startswith(_SOURCE))
    return min(sources, key=lambda source: digest("bundle", source))
