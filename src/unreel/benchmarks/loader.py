"""Opening of benchmarks, in the layout that is detected or that the user names."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from unreel.benchmarks.cells import is_url
from unreel.benchmarks.clip_tables import find_fallback_tables
from unreel.benchmarks.columns import guess_field_columns, map_fields_to_columns
from unreel.benchmarks.entry import Entry, Rejected, Row
from unreel.benchmarks.folder_layout import VIDEO_SUFFIXES, reject_outside_links
from unreel.benchmarks.layout import LAYOUTS, Columns, list_layouts
from unreel.benchmarks.table_entries import LABELS
from unreel.benchmarks.tables import TABLE_SUFFIXES, read_table_column_names, read_table_rows
from unreel.benchmarks.unique_names import reject_repeated_names
from unreel.core.errors import InvalidSettingError, UnknownNameError, UnreadableSourceError

SHOW = "`unreel benchmarks` shows the layouts"


@contextmanager
def add_layout_hint_to_errors(fitting: Callable[[], Sequence[str]]) -> Iterator[None]:
    """Add the other layouts of `fitting`, if any, to an `UnreadableSourceError` of the `with` block."""
    try:
        yield
    except UnreadableSourceError as error:
        if not (layouts := fitting()):
            raise
        raise UnreadableSourceError(
            error.source,
            error.problem,
            f"{error.remedy}, or name the layout that fits: --layout {layouts[0]}",
        ) from error


def build_unknown_layout_error(
    path: Path, layouts: Sequence[str], mapping: Mapping[str, str] | None
) -> UnreadableSourceError:
    """Return the error for a path that fits none of `layouts`; for a table, with likely columns."""
    if path.is_dir() or path.suffix.lower() not in TABLE_SUFFIXES:
        remedy = f"Lay it out as one of {', '.join(layouts)}, or name a table of clips. {SHOW}"
        return UnreadableSourceError(str(path), "not a known benchmark layout", remedy)
    columns = read_table_column_names(path)
    binding = map_fields_to_columns(str(path), columns, mapping)
    missing = {field: looks for field, looks in _LOOKS.items() if field not in binding}
    if binding.has_label_column:
        missing.pop("label", None)
    rows = (row for row in read_table_rows(path) if not isinstance(row, Rejected))
    guessed = guess_field_columns(rows, [c for c in columns if c not in binding.read], missing)
    named = [f"--map {field}={shlex.quote(guessed.get(field, 'COLUMN'))}" for field in missing]
    problem = f"no column contains the {' or the '.join(missing)} (it has {', '.join(columns)})"
    remedy = f"Name the column: {' '.join(named)}. {SHOW}"
    return UnreadableSourceError(str(path), problem, remedy)


_LOOKS: Mapping[str, Callable[[object], bool]] = {
    "location": lambda cell: (
        isinstance(cell, str) and cell.strip().lower().endswith(VIDEO_SUFFIXES)
    ),
    "label": lambda cell: isinstance(cell, str) and cell.strip().lower() in LABELS,
}
"""Required fields of a table of clips, and tests of their cells."""


_NORMAL = re.compile(r"[^./][^/]*(?:/[^./][^/]*)*")
"""Pattern of a relative path without empty or dotted parts."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark on disk: iterate over it, as often as needed, for its entries and rejected rows."""

    layout: str
    root: Path
    """Folder to which the locations of the entries are relative."""
    read: Callable[[], Iterator[Row]]

    def __iter__(self) -> Iterator[Row]:
        """Yield rows, repeated names as rejected; a name costs about 90 bytes, `read` stores none."""
        return reject_repeated_names(self.read())

    def find(self, entry: Entry) -> str:
        """Return the path or URL of the entry's file."""
        return self._place(entry.location)

    def find_cleaned(self, entry: Entry) -> str | None:
        """Return the path or URL of the entry's copy without watermark; None if there is none."""
        return None if entry.cleaned is None else self._place(entry.cleaned)

    def _place(self, location: str) -> str:
        if is_url(location):
            return location
        # Normal paths below the root are joined as text, which takes a tenth of the time.
        if _NORMAL.fullmatch(location):
            return _format_path_prefix(self.root) + location
        return str(self.root / location)


@lru_cache(maxsize=8)
def _format_path_prefix(root: Path) -> str:
    """Return the text that precedes a file name in paths below `root`: "" for the current folder."""
    return str(root / "x").removesuffix("x")


def open_benchmark(
    path: Path, layout: str | None = None, *, mapping: Columns | None = None, outside: bool = False
) -> Benchmark:
    """Open the benchmark at `path`, a directory or a table, in the given or the detected layout.

    `mapping` maps fields to columns of a table, see `unreel.benchmarks.columns.KNOWN`. `outside`
    lets a table name files outside its directory; directory layouts never do. Raise
    `UnreadableSourceError` if no layout fits, or several layouts fit and none is given.
    """
    if not path.exists():
        is_address = re.match(r"[a-z0-9+]{2,}:/", str(path))
        raise UnreadableSourceError(
            str(path),
            "a URL, not a local path" if is_address else "no such file or folder",
            "Download the table or folder first; its clips may stay at s3:// or https:// locations"
            if is_address
            else "Check the path",
        )
    if layout is None:
        layouts = find_matching_layouts(path, mapping)
        if not layouts:
            raise build_unknown_layout_error(path, list_layouts(), mapping)
        if len(layouts) > 1:
            problem = f"could be read as {' or '.join(layouts)}"
            remedy = f"Name the layout that you mean, for example --layout {layouts[0]}, or the table itself"
            raise UnreadableSourceError(str(path), problem, remedy)
        layout = layouts[0]
    if layout not in LAYOUTS:
        raise UnknownNameError("layout", layout, list_layouts())
    chosen, reader = str(layout), LAYOUTS.load(layout)
    if mapping and not reader.takes_mapping:
        raise InvalidSettingError(
            "mapping", f"layout {chosen} has fixed columns", "Leave the mapping out"
        )
    root = path if path.is_dir() else path.parent
    list_others = partial(_list_other_layouts, path, chosen, mapping)
    may_leave = outside and reader.takes_mapping
    is_prescribed = reader.tables is not None and path.name not in reader.tables
    with add_layout_hint_to_errors(list_others):
        if path.is_file() and is_prescribed:
            raise UnreadableSourceError(
                str(path), f"not what layout {chosen} is read from", "Name the folder"
            )
        reader.read(path, mapping, outside)  # raises here if a table is missing; no row is read

    def iter_rows() -> Iterator[Row]:
        with add_layout_hint_to_errors(list_others):
            rows = reader.read(path, mapping, outside)
            yield from rows if may_leave else reject_outside_links(rows, root)

    return Benchmark(chosen, root, iter_rows)


def find_matching_layouts(path: Path, mapping: Columns | None = None) -> list[str]:
    """Return every layout that fits the folder or file `path`.

    A file whose name a layout prescribes has that layout only. The table `clips` of a folder counts
    if nothing else fits the folder.
    """
    names = [*LAYOUTS.entries, *(name for name in LAYOUTS.names() if name not in LAYOUTS.entries)]
    readers = {str(name): LAYOUTS.load(name) for name in names}
    table_readers = {name: reader for name, reader in readers.items() if reader.tables is None}
    if not path.is_dir():
        prescribed = [
            name
            for name, reader in readers.items()
            if path.name in (reader.tables or ()) and reader.matches(path, mapping)
        ]
        if prescribed:
            return prescribed
        readers = table_readers
    found = [name for name, reader in readers.items() if reader.matches(path, mapping)]
    for table in () if found else find_fallback_tables(path):
        found += [name for name, reader in table_readers.items() if reader.matches(table, mapping)]
    return list(dict.fromkeys(found))


def _list_other_layouts(path: Path, chosen: str, mapping: Columns | None) -> list[str]:
    return [layout for layout in find_matching_layouts(path, mapping) if layout != chosen]
