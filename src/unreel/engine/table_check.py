"""Check of a stored table: all its files are read in a child process, which may crash.

A flipped byte in a data file can end the process that decodes it (Lance aborts on some
impossible lengths). So files are read in a child, one at a time, and a file that ends it is
unreadable.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from typing import Any, Final

import numpy as np
from lance.file import LanceFileReader
from numpy.typing import NDArray
from obstore.exceptions import BaseError

from unreel.core.chunks import SCAN_ROWS
from unreel.core.errors import UnreelError, format_library_error
from unreel.core.failure import FailureReason
from unreel.engine.key_index import hash_key_to_int
from unreel.engine.schema import TableSchema, has_wrong_seal
from unreel.engine.stage import Row
from unreel.engine.table import LanceTable

CHANGED: Final = "changed after it was written"
LATER: Final = "of a later release"
WRONG_KEY: Final = "a key that does not follow from its question"
WRONG_CLIP: Final = "a clip id that is no hash"
UNKNOWN_REASON: Final = "a failure with an unknown reason"
_HINT: Final = "_versions/latest_version_hint.json"
_NEWEST: Final = 2**64 - 1
"""Minuend in Lance's manifest names, from which the version is subtracted so that the latest is listed first."""
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_REASONS: Final = frozenset(reason.value for reason in FailureReason)

Judge = Callable[[Row], str | None]
"""Function that returns the error of a stored row as a countable text, or `None`; it must pickle."""


@dataclass(frozen=True, slots=True)
class TableCheckRule:
    """Rules for the check of a table: its schema, and a function that checks a row."""

    schema: TableSchema
    judge: Judge


def is_sha256_hex(text: str) -> bool:
    """Return whether `text` has the format of an id or key: SHA-256 in lower-case hexadecimal digits."""
    return _HASH.fullmatch(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentReference:
    """Reference to one Lance fragment of a table: rows that were committed or compacted together."""

    version: int
    """Version of the table that contains the fragment."""
    id: int
    files: tuple[str, ...]
    """Paths of the data files, relative to the table's folder."""
    deletions: str
    """Lance's description of the deleted rows; empty if there are none."""
    n_rows: int
    """Number of rows according to the manifest."""


@dataclass(frozen=True, slots=True)
class UnreferencedFile:
    """Data file of a table that the checked version does not reference."""

    path: str


Piece = FragmentReference | UnreferencedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentCheckResult:
    """Result of the check of a fragment that could be read: its key hashes and row errors."""

    marks: NDArray[np.uint64] = field(repr=False)
    """Hashes of the keys: see `hash_key_to_int`."""
    faults: Mapping[str, int]
    """Number of invalid rows, by error."""

    @property
    def n_rows(self) -> int:
        """Return the number of rows of the fragment."""
        return len(self.marks)


@dataclass(frozen=True, slots=True)
class UnreadableFragment:
    """Fragment that could not be read, with the reason."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCheckResult:
    """Result of the check of one table: its version, its fragments and the problems."""

    table: LanceTable
    version: int | None
    """Latest version that can be opened; `None` if there is none."""
    problems: tuple[str, ...]
    """Errors of versions after `version`, and lost manifests."""
    pieces: tuple[tuple[FragmentReference, FragmentCheckResult | UnreadableFragment], ...]
    """Fragments of `version`, each with the result of its check."""
    whole_version: int | None
    """Latest version without any damage; `None` if there is none."""
    n_older: int
    """Number of data files of older versions, which are kept for a limited time."""
    loose: tuple[UnreferencedFile, ...]
    """Data files that `version` does not reference, including those of older versions."""

    @property
    def exists(self) -> bool:
        """Return whether there is a table, or the remains of one."""
        return self.version is not None or bool(self.problems)

    @property
    def n_files(self) -> int:
        """Return the number of data files of the version."""
        return sum(len(fragment.files) for fragment, _ in self.pieces)

    @property
    def n_rows(self) -> int:
        """Return the number of readable rows."""
        return sum(
            content.n_rows for _, content in self.pieces if isinstance(content, FragmentCheckResult)
        )

    @property
    def unreadable(self) -> tuple[tuple[FragmentReference, str], ...]:
        """Return the unreadable fragments, each with the reason."""
        unreadable = (
            (fragment, how) for fragment, how in self.pieces if isinstance(how, UnreadableFragment)
        )
        return tuple((fragment, how.why) for fragment, how in unreadable)

    @property
    def faults(self) -> Mapping[str, int]:
        """Count invalid rows by error."""
        tally: Counter[str] = Counter()
        for _, content in self.pieces:
            if isinstance(content, FragmentCheckResult):
                tally.update(content.faults)
        return dict(sorted(tally.items()))

    @property
    def n_doubled(self) -> int:
        """Count the keys that have more than one row."""
        return count_duplicate_keys(
            [content for _, content in self.pieces if isinstance(content, FragmentCheckResult)]
        )

    @property
    def is_whole(self) -> bool:
        """Return whether the table has no damage."""
        return not (self.problems or self.unreadable or self.faults or self.n_doubled)


def count_duplicate_keys(contents: Sequence[FragmentCheckResult]) -> int:
    """Return the number of keys that occur more than once in the checked fragments."""
    if not contents:
        return 0
    marks = np.sort(np.concatenate([part.marks for part in contents]))
    return len(np.unique(marks[1:][marks[1:] == marks[:-1]]))


class TableChecker:
    """Checker of table fragments in a child process, which is restarted if a fragment crashes it."""

    def __enter__(self) -> "TableChecker":
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def read(
        self, table: LanceTable, piece: Piece, judge: Judge
    ) -> FragmentCheckResult | UnreadableFragment:
        """Read the complete fragment and check each row; return its contents, or why it is unreadable."""
        result: FragmentCheckResult | UnreadableFragment = self._call(
            partial(_read_fragment, table, piece, judge)
        )
        return result

    def fragments(
        self, table: LanceTable, version: int
    ) -> tuple[FragmentReference, ...] | UnreadableFragment:
        """Return the fragments of a version of the table, or why the version is unreadable."""
        result: tuple[FragmentReference, ...] | UnreadableFragment = self._call(
            partial(_read_version_fragments, table, version)
        )
        return result

    def _call(self, ask: Callable[[], Any]) -> Any:
        try:
            return self._pool.submit(ask).result()
        except BrokenProcessPool:
            self._pool.shutdown()
            self._start()
            return UnreadableFragment("reading it ends the process that reads it")

    def _start(self) -> None:
        context = get_context("spawn")
        self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_silence_stderr)


def check_stored_table(table: LanceTable, examiner: TableChecker, judge: Judge) -> TableCheckResult:
    """Check the latest version of `table` completely; if it is damaged, check earlier ones too.

    Raises:
        UnreadableSourceError: The store of the table cannot be reached.
    """
    files = table.files()
    versions = sorted(
        (_parse_manifest_version(path) for path in files if path.endswith(".manifest")),
        reverse=True,
    )
    problems = _list_lost_versions(table, versions)
    known: dict[tuple[tuple[str, ...], str], FragmentCheckResult | UnreadableFragment] = {}
    version: int | None = None
    intact: int | None = None
    pieces: list[tuple[FragmentReference, FragmentCheckResult | UnreadableFragment]] = []
    named: set[str] = set()
    for candidate in versions:
        fragments = examiner.fragments(table, candidate)
        if isinstance(fragments, UnreadableFragment):
            if version is None:
                problems.append(f"version {candidate} cannot be opened: {fragments.why}")
            continue
        named.update(path for fragment in fragments for path in fragment.files)
        if intact is not None:
            continue  # older versions are only searched for the files that they reference
        checked = []
        for fragment in fragments:
            rows = (fragment.files, fragment.deletions)
            if rows not in known:
                known[rows] = examiner.read(table, fragment, judge)
            checked.append((fragment, known[rows]))
        if version is None:
            version, pieces = candidate, checked
        if _are_fragments_intact([how for _, how in checked]):
            intact = candidate
    used = {path for fragment, _ in pieces for path in fragment.files}
    data = sorted(path for path in files if path.startswith("data/"))
    if data and not versions:
        problems.append("all manifests are lost")
    return TableCheckResult(
        table=table,
        version=version,
        problems=tuple(problems),
        pieces=tuple(pieces),
        whole_version=intact,
        n_older=len((named - used) & set(data)),
        loose=tuple(UnreferencedFile(path) for path in data if path not in used),
    )


def iter_fragment_rows(table: LanceTable, piece: Piece) -> Iterator[Row]:
    """Yield the stored rows of a fragment, unchecked; this may raise any error or end the process."""
    if isinstance(piece, FragmentReference):
        fragment = table.open(piece.version).get_fragment(piece.id)
        batches = fragment.scanner(batch_size=SCAN_ROWS).to_batches()
    else:
        uri = (table.place / piece.path).uri
        reader = LanceFileReader(uri, storage_options=table.place.storage_options)
        batches = reader.read_all(batch_size=SCAN_ROWS).to_batches()
    for batch in batches:
        yield from batch.to_pylist()


def find_row_fault(row: Row, table: LanceTable, judge: Judge) -> str | None:
    """Return the error of a stored row as text; `None` if the row is valid."""
    if row["row_version"] > table.schema.version:
        return LATER
    if has_wrong_seal(row):
        return CHANGED
    reason = row["failure_reason"]
    if reason is not None and reason not in _REASONS:
        return UNKNOWN_REASON
    return judge(row)


def _are_fragments_intact(results: Sequence[FragmentCheckResult | UnreadableFragment]) -> bool:
    contents = [how for how in results if isinstance(how, FragmentCheckResult)]
    if len(contents) < len(results) or any(part.faults for part in contents):
        return False
    return count_duplicate_keys(contents) == 0


def _list_lost_versions(table: LanceTable, versions: Sequence[int]) -> list[str]:
    """Return a problem text if Lance's hint file names a later version than all manifests; else []."""
    try:
        noted = json.loads(table.place.read(_HINT))["version"]
    except (BaseError, OSError, ValueError, TypeError, LookupError):
        return []
    if versions and isinstance(noted, int) and noted > versions[0]:
        return [f"the manifest of version {noted} is lost"]
    return []


def _parse_manifest_version(path: str) -> int:
    number = int(path.removeprefix("_versions/").removesuffix(".manifest"))
    return number if number < 2**63 else _NEWEST - number


def _read_fragment(
    table: LanceTable, piece: Piece, judge: Judge
) -> FragmentCheckResult | UnreadableFragment:
    faults: Counter[str] = Counter()
    marks: list[int] = []
    try:
        for row in iter_fragment_rows(table, piece):
            marks.append(hash_key_to_int(row["key"]))
            fault = find_row_fault(row, table, judge)
            if fault is not None:
                faults[fault] += 1
    except (UnreelError, OSError, ValueError, RuntimeError, LookupError) as error:
        return UnreadableFragment(format_library_error(error))
    return FragmentCheckResult(marks=np.array(marks, dtype=np.uint64), faults=dict(faults))


def _read_version_fragments(
    table: LanceTable, version: int
) -> tuple[FragmentReference, ...] | UnreadableFragment:
    try:
        fragments = table.open(version).get_fragments()
        return tuple(_build_checked_fragment(fragment, version) for fragment in fragments)
    except (UnreelError, OSError, ValueError, RuntimeError) as error:
        return UnreadableFragment(format_library_error(error))


def _build_checked_fragment(fragment: Any, version: int) -> FragmentReference:
    metadata = fragment.metadata
    gone = metadata.deletion_file
    return FragmentReference(
        version=version,
        id=fragment.fragment_id,
        files=tuple(f"data/{file.path}" for file in metadata.files),
        deletions="" if gone is None else repr(gone),
        n_rows=metadata.num_rows,
    )


def _silence_stderr() -> None:
    """Suppress Lance's output on stderr."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 2)
