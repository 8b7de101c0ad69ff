"""Ids and stream properties of a benchmark's clips, read once per file and stored in a table."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from unreel.benchmarks.cells import is_url
from unreel.benchmarks.entry import Entry
from unreel.benchmarks.loader import Benchmark
from unreel.benchmarks.questions import ProbedEntry
from unreel.core.chunks import iter_chunks
from unreel.core.clip import Clip, ClipFacts
from unreel.core.content_ids import compute_clip_id
from unreel.core.failure import (
    Failure,
    FailureReason,
    build_damaged_row_failure,
    parse_stored_failure,
)
from unreel.core.safe_names import read_clip_id
from unreel.engine.schema import TableSchema
from unreel.engine.stage import MediaStage, Row, WorkerResources, convert_to_failed_row
from unreel.engine.storage_access import (
    ClipAccessSettings,
    compute_file_identity,
    compute_file_name_key,
    provide_local_clip_file,
    read_object_tags,
    read_size_and_mtime,
)

if TYPE_CHECKING:
    from unreel.engine.table import LanceTable

FACTS = TypeAdapter(ClipFacts)
CLIPS = TableSchema(
    name="clips",
    version=1,
    columns={
        "name": "string",
        "location": "string",
        "clip": "string",
        "facts": "string",
        "mark": "string",
    },
)
"""Schema of clips: one row per file of a benchmark; `clip` is the id of its bytes, `facts` is JSON. The key
of a file is its name in the benchmark, that of an object its URL, and `mark` identifies its
bytes: a row with another mark replaces it, so that a run can be scored without its clips.
"""
_NAMED = 512
"""Number of entries whose files are located together, before the first of them is yielded."""
_FACTS_LENGTH = 1 << 20
"""Maximum number of characters of a clip's JSON; a clip with many tracks has a few thousand."""


_USUAL_LENGTH = 2048
_SIZE = re.compile(
    r'(?P<before>\{"container":"[^"\\]*","size_bytes":)(?P<size>[1-9][0-9]{0,17})(?=,)'
)
"""Pattern of the beginning of the JSON that this release writes, up to the file size."""
_NOT_SURVEYED = Failure(FailureReason.CLIP_CHANGED, "not surveyed: the benchmark has changed since")


class ClipProbeStage(MediaStage):
    """Stage that adds the clip's id and stream properties to each row that lacks them."""

    def __init__(self, access: ClipAccessSettings, *, in_flight: int = 2) -> None:
        super().__init__(access, WorkerResources(in_flight=in_flight))

    def __call__(self, row: Row) -> Row:
        if row.get("facts"):
            return row
        with provide_local_clip_file(row["location"], self._access) as file:
            facts = self._reader.probe(file)
            if isinstance(facts, Failure):
                return convert_to_failed_row(row, facts)
            return row | {"clip": compute_clip_id(file), "facts": FACTS.dump_json(facts).decode()}


class _BenchmarkFile(NamedTuple):
    words: str
    place: str

    @property
    def key(self) -> str:
        return (
            compute_file_identity(self.words)
            if is_url(self.words)
            else compute_file_name_key(self.words)
        )


def iter_clip_file_rows(
    benchmark: Benchmark,
    entries: Iterable[Entry],
    access: ClipAccessSettings,
    *,
    cleaned: bool = False,
) -> Iterator[Row]:
    """Yield one row for each clip file, as input of `ClipProbeStage`; cleaned files only if `cleaned`."""
    for chunk in iter_chunks(entries, _NAMED):
        files = [
            (e, file) for e in chunk for file in _list_entry_files(benchmark, e, cleaned=cleaned)
        ]
        tags = read_object_tags([file.place for _, file in files if is_url(file.place)], access)
        for entry, file in files:
            mark = tags[file.place] if is_url(file.place) else read_size_and_mtime(file.place)
            named = {"key": file.key, "name": entry.name}
            yield named | {"location": file.place, "mark": mark}


def reuse_stored_clip_facts(rows: Iterable[Row], known_table: "LanceTable") -> Iterator[Row]:
    """Yield rows, with stored facts from `known_table` if a successful row has the same key and mark."""
    for chunk in iter_chunks(rows):
        stored = {row["key"]: row for row in known_table.get([row["key"] for row in chunk])}
        for row in chunk:
            facts = stored.get(row["key"], {})
            is_same = facts.get("mark") == row.get("mark") and not facts.get("failure_reason")
            what = ("clip", "facts")
            yield row | ({name: facts[name] for name in what} if facts and is_same else {})


class StoredClipFacts:
    """Lookup of the stored ids and properties of a benchmark's clips, in the first of `tables` that has them."""

    def __init__(self, *tables: "LanceTable") -> None:
        self._tables = tables

    def find(
        self, benchmark: Benchmark, entries: Iterable[Entry]
    ) -> Iterator[tuple[Entry, Clip | Failure]]:
        """Yield each entry with its clip, or with the failure of its file, in order."""
        for probed in self.find_files(benchmark, entries, cleaned=False):
            yield probed.entry, probed.clip

    def find_files(
        self, benchmark: Benchmark, entries: Iterable[Entry], *, cleaned: bool
    ) -> Iterator[ProbedEntry[Clip]]:
        """Yield each entry with its clip and its cleaned clip, or their failures, in order."""
        for chunk in iter_chunks(entries):
            files = [_list_entry_files(benchmark, entry, cleaned=cleaned) for entry in chunk]
            rows = self._rows([file for pair in files for file in pair])
            clips = {
                file: _parse_clip_row(file.place, row, source=self._tables[0].place.uri)
                for file, row in rows.items()
            }
            for entry, (file, *second) in zip(chunk, files, strict=True):
                yield ProbedEntry(
                    entry=entry,
                    clip=clips.get(file, _NOT_SURVEYED),
                    cleaned=clips.get(second[0], _NOT_SURVEYED) if second else None,
                )

    def _rows(self, files: list[_BenchmarkFile]) -> dict[_BenchmarkFile, Row]:
        keys = {file: file.key for file in files}
        values = list(keys.values())
        rows = {row["key"]: row for table in self._tables[::-1] for row in table.get(values)}
        return {file: rows[key] for file, key in keys.items() if key in rows}


def _list_entry_files(benchmark: Benchmark, entry: Entry, *, cleaned: bool) -> list[_BenchmarkFile]:
    files = [_BenchmarkFile(entry.location, benchmark.find(entry))]
    second = benchmark.find_cleaned(entry) if cleaned else None
    if second is not None and entry.cleaned is not None:
        files.append(_BenchmarkFile(entry.cleaned, second))
    return files


def _parse_clip_row(location: str, row: Mapping[str, Any], *, source: str) -> Clip | Failure:
    if row["failure_reason"] is not None:
        return parse_stored_failure(row["failure_reason"], row["failure_detail"])
    text = row["facts"] or ""
    if len(text) > _FACTS_LENGTH:
        return build_damaged_row_failure("facts of a clip beyond all measure")
    try:
        written = _SIZE.match(text) if len(text) <= _USUAL_LENGTH else None
        if written is None:
            facts = FACTS.validate_json(text)
        else:
            same = _parse_cached_facts(f"{written['before']}0{text[written.end() :]}")
            facts = ClipFacts(
                container=same.container,
                size_bytes=int(written["size"]),
                video=same.video,
                audio=same.audio,
                tags=same.tags,
            )
    except ValidationError:
        return build_damaged_row_failure("no facts of a clip")
    return Clip(id=read_clip_id(row["clip"], source), location=location, facts=facts)


@lru_cache(maxsize=4096)
def _parse_cached_facts(text: str) -> ClipFacts:
    return FACTS.validate_json(text)
