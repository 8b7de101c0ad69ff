"""Differences between two versions of a benchmark, clip by clip."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from unreel.benchmarks.entry import Entry
from unreel.benchmarks.loader import open_benchmark
from unreel.benchmarks.table_entries import convert_entry_to_record
from unreel.benchmarks.tables import read_table_rows
from unreel.benchmarks.video_folder import find_metadata_tables
from unreel.core.content_ids import compute_clip_id
from unreel.core.safe_names import read_clip_id
from unreel.curation.step_execution import format_canonical_json

COMPARED = (
    "split",
    "label",
    "creator",
    "setting",
    "group",
    "licence",
    "source",
    "prompt",
    "difficulty",
    "score",
    "error_family",
    "traces",
)
BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class ClipFieldChange:
    """Changed field of a clip: value in the old and in the new version of a benchmark."""

    name: str
    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkDifference:
    """Differences of two benchmarks: added, removed and renamed clips, and changed fields."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]
    """Old and new names of clips with the same bytes; `added` and `removed` do not contain them."""
    changed: tuple[ClipFieldChange, ...]
    n_same: int

    @property
    def is_empty(self) -> bool:
        """Return whether both versions contain the same clips with the same ground truth."""
        return not (self.added or self.removed or self.renamed or self.changed)


def compare_benchmarks(before: Path, after: Path) -> BenchmarkDifference:
    """Return the differences between the benchmark at `before` and its other version at `after`."""
    old, new = _read_entry_fields(before), _read_entry_fields(after)
    gone, come = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    new_names = {new[name][BYTES]: name for name in reversed(come)}
    renamed = tuple(
        (name, new_names[old[name][BYTES]]) for name in gone if old[name][BYTES] in new_names
    )
    moved = {name for pair in renamed for name in pair}
    pairs = [(name, name) for name in sorted(old.keys() & new.keys())] + list(renamed)
    changed = tuple(
        ClipFieldChange(old_name, field, old[old_name][field], new[new_name][field])
        for old_name, new_name in pairs
        for field in (*COMPARED, BYTES)
        if old[old_name][field] != new[new_name][field]
    )
    return BenchmarkDifference(
        added=tuple(name for name in come if name not in moved),
        removed=tuple(name for name in gone if name not in moved),
        renamed=renamed,
        changed=changed,
        n_same=len(pairs) - len({change.name for change in changed} | {old for old, _ in renamed}),
    )


def _read_entry_fields(path: Path) -> dict[str, Mapping[str, str]]:
    benchmark = open_benchmark(path)
    tables = find_metadata_tables(path) if path.is_dir() else ()
    rows = (row for table in tables for row in read_table_rows(table) if isinstance(row, Mapping))
    sums = {
        str(row["name"]): read_clip_id(row["sha256"], str(path))
        for row in rows
        if {"name", "sha256"} <= set(row)
    }
    fields: dict[str, Mapping[str, str]] = {}
    for entry in benchmark:
        if not isinstance(entry, Entry):
            continue
        record = convert_entry_to_record(entry, file_name="")
        values = {
            field: value if isinstance(value, str) else format_canonical_json(value)
            for field, value in ((field, record[field]) for field in COMPARED)
        }
        if not (sha256 := sums.get(entry.name, "")):
            file = Path(benchmark.find(entry))
            sha256 = compute_clip_id(file) if file.is_file() else ""
        fields[entry.name] = values | {BYTES: sha256}
    return fields
