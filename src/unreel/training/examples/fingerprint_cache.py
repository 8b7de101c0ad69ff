"""Stored hashes and fingerprints of training clips, so that nothing is computed twice."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from unreel.benchmarks.entry import Entry
from unreel.benchmarks.loader import Benchmark
from unreel.benchmarks.questions import ProbedEntry
from unreel.core.chunks import iter_chunks
from unreel.core.clip import Clip
from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.core.output_files import OutputDirectory
from unreel.engine.location import StorageLocation
from unreel.engine.media_stage import MediaStage
from unreel.engine.progress import OnStep
from unreel.engine.run import run
from unreel.engine.schema import TableSchema
from unreel.engine.stage import Row, WorkerResources, to_failed_row
from unreel.engine.storage_access import StorageAccess, local_copy
from unreel.engine.survey import CLIPS, ClipSurvey, SurveyStage, survey_rows
from unreel.engine.table import LanceTable
from unreel.media.borders import find_borders
from unreel.media.fingerprint import ClipFingerprint, HeldPrints, fingerprint
from unreel.media.near_duplicates import ClipMatch, find_matches

PRINTS: Final = TableSchema(name="prints", version=1, columns={"print": "string"})
"""One row for a clip by the id of its bytes; `print` is its fingerprint as JSON."""
_PRINT: Final = TypeAdapter(ClipFingerprint)


class PrintStage(MediaStage):
    """Adds the fingerprint of a clip to its row."""

    def __init__(self, access: StorageAccess, *, in_flight: int = 2) -> None:
        super().__init__(access, WorkerResources(in_flight=in_flight))

    def __call__(self, row: Row) -> Row:
        with local_copy(row["_location"], self._access) as file:
            scan = self._reader.scan(file)
        if isinstance(scan, Failure):
            return to_failed_row(row, scan)
        own = fingerprint(scan, find_borders(scan.picked))
        return row | {"print": _PRINT.dump_json(own).decode()}


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateGroups:
    """Groups of clips with the same content."""

    matches: tuple[ClipMatch, ...]
    unlooked: Mapping[str, int]
    """Clips that could not be looked at, by reason: they are compared by their bytes alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleTables:
    """Tables in a folder that the next call finds again."""

    folder: Path
    access: StorageAccess
    on_step: OnStep = lambda _part, _progress: None

    def find(
        self, benchmark: Benchmark, entries: Sequence[Entry], *, cleaned: bool = False
    ) -> Iterator[ProbedEntry[Clip]]:
        """Yield each entry with the properties of its files, in order."""
        # Two benchmarks may call different files by one name.
        own = digest("benchmark", str(benchmark.root.absolute()))[:16]
        table = self._table(f"clips-{own}", CLIPS)
        run(
            survey_rows(benchmark, entries, self.access, cleaned=cleaned),
            [SurveyStage(self.access)],
            table=table,
            on_progress=lambda progress: self.on_step("clips", progress),
        )
        yield from ClipSurvey(table).find_files(benchmark, entries, cleaned=cleaned)

    def compare(self, clips: Sequence[Clip]) -> DuplicateGroups:
        """Find all pairs of `clips` with the same content, by clip id."""
        locations = {clip.id: clip.location for clip in clips}
        table = self._table("prints", PRINTS)
        run(
            ({"key": key, "_location": location} for key, location in locations.items()),
            [PrintStage(self.access)],
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
        matches = find_matches(HeldPrints(sorted(prints)), every=True)
        return DuplicateGroups(matches=tuple(matches), unlooked=unlooked)

    def _table(self, name: str, schema: TableSchema) -> LanceTable:
        OutputDirectory(self.folder).make()
        return LanceTable(StorageLocation(str(self.folder)) / f"{name}.lance", schema)
