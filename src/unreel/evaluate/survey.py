"""Which clips a benchmark really has: bytes hashed, streams read, once for each file."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter, ValidationError

from unreel.benchmarks.entry import Entry
from unreel.benchmarks.opening import Benchmark
from unreel.benchmarks.planning import Found
from unreel.core.clip import Clip
from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure, FailureReason, damaged_row, stored_failure
from unreel.core.identity import clip_id
from unreel.core.names import read_clip_id
from unreel.engine.access import Access, file_mark, local_copy, object_marks
from unreel.engine.media_stage import MediaStage
from unreel.engine.stage import Row, failed

if TYPE_CHECKING:
    from unreel.engine.table import Table

FACTS: Final = TypeAdapter(ClipFacts)
_LOOK: Final = 512
_FACTS_LENGTH: Final = 1 << 20
"""Characters; the facts of a clip with many tracks have a few thousand."""


class SurveyStage(MediaStage):
    """Adds a clip's id and facts to its row, where they are not there already."""

    def __init__(self, access: Access, *, in_flight: int = 2) -> None:
        super().__init__(access, in_flight=in_flight)

    def __call__(self, row: Row) -> Row:
        if row.get("facts"):
            return row
        with local_copy(row["location"], self._access) as file:
            facts = self._reader.probe(file)
            if isinstance(facts, Failure):
                return failed(row, facts)
            return row | {"clip": clip_id(file), "facts": FACTS.dump_json(facts).decode()}


def survey_rows(
    benchmark: Benchmark, entries: Iterable[Entry], access: Access, *, cleaned: bool = False
) -> Iterator[Row]:
    """One row for each file, to be put through `SurveyStage`; `cleaned` files only on demand."""
    source = iter(entries)
    while chunk := list(itertools.islice(source, _LOOK)):
        rows: list[Row] = [
            {"key": file_mark(location), "name": entry.name, "location": location}
            for entry in chunk
            for location in _locations(benchmark, entry, cleaned=cleaned)
        ]
        stored = [row["location"] for row in rows if "://" in row["location"]]
        marks = object_marks(stored, access)
        for row in rows:
            yield row | ({"mark": marks[row["location"]]} if row["location"] in marks else {})


def recall(rows: Iterable[Row], known: "Table") -> Iterator[Row]:
    """The rows, those whose file another run has surveyed with what it found there."""
    source = iter(rows)
    while chunk := list(itertools.islice(source, _LOOK)):
        found = {row["key"]: row for row in known.get([row["key"] for row in chunk])}
        for row in chunk:
            there = found.get(row["key"], {})
            is_same = there.get("mark") == row.get("mark") and not there.get("failure_reason")
            what = ("clip", "facts")
            yield row | ({name: there[name] for name in what} if there and is_same else {})


class Survey:
    """What was found at the files of a benchmark, in one table or in several."""

    def __init__(self, *tables: "Table") -> None:
        self._tables = tables

    def find(
        self, benchmark: Benchmark, entries: Iterable[Entry]
    ) -> Iterator[tuple[Entry, Clip | Failure]]:
        """Each entry with what was found at its file, in order."""
        for found in self.find_files(benchmark, entries, cleaned=False):
            yield found.entry, found.clip

    def find_files(
        self, benchmark: Benchmark, entries: Iterable[Entry], *, cleaned: bool
    ) -> Iterator[Found[Clip]]:
        """Each entry with what was found at its files, in order; many are looked up at once."""
        source = iter(entries)
        while chunk := list(itertools.islice(source, _LOOK)):
            places = [_locations(benchmark, entry, cleaned=cleaned) for entry in chunk]
            marks = {place: file_mark(place) for pair in places for place in pair}
            keys = list(marks.values())
            rows = {row["key"]: row for table in self._tables for row in table.get(keys)}
            found = {
                place: _found(place, rows.get(mark), source=self._tables[0].place.uri)
                for place, mark in marks.items()
            }
            for entry, (place, *second) in zip(chunk, places, strict=True):
                yield Found(
                    entry=entry, clip=found[place], cleaned=found[second[0]] if second else None
                )


def _locations(benchmark: Benchmark, entry: Entry, *, cleaned: bool) -> list[str]:
    second = benchmark.find_cleaned(entry) if cleaned else None
    return [benchmark.find(entry)] if second is None else [benchmark.find(entry), second]


def _found(location: str, row: Mapping[str, Any] | None, *, source: str) -> Clip | Failure:
    if row is None:
        return Failure(FailureReason.CLIP_CHANGED, "it changed while the benchmark was read")
    if row["failure_reason"] is not None:
        return stored_failure(row["failure_reason"], row["failure_detail"])
    if len(row["facts"] or "") > _FACTS_LENGTH:
        return damaged_row("facts of a clip beyond all measure")
    try:
        facts = FACTS.validate_json(row["facts"] or "")
    except ValidationError:
        return damaged_row("no facts of a clip")
    clip = read_clip_id(row["clip"], source)
    return Clip(id=clip, location=location, facts=facts)
