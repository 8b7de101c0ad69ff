"""Opening of benchmarks, in the layout that is detected or that the user names."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from unreel.benchmarks import cells, deeptrace, video_reality_test
from unreel.benchmarks.cells import is_url
from unreel.benchmarks.columns import guess_field_columns, map_fields_to_columns
from unreel.benchmarks.entry import BenchmarkLayout, Entry, Rejected, Row
from unreel.benchmarks.folder_layout import (
    GENERATED,
    REAL,
    VIDEO_SUFFIXES,
    find_file_inside_folder,
    read_folder_benchmark,
    reject_outside_links,
)
from unreel.benchmarks.localisation.predictions import detect_segment_file_layouts
from unreel.benchmarks.localisation.segment_files import (
    read_activity_forensics_entries,
    read_lav_df_entries,
    read_vif_cot_entries,
)
from unreel.benchmarks.table_entries import (
    LABELS,
    get_row_name,
    has_score_columns,
    parse_entry,
    read_clip_table,
)
from unreel.benchmarks.tables import TABLE_SUFFIXES, read_table_column_names, read_table_rows
from unreel.benchmarks.unique_names import reject_repeated_names
from unreel.benchmarks.video_folder import METADATA, find_metadata_tables, read_video_folder
from unreel.core.errors import (
    InvalidSettingError,
    InvalidValueError,
    UnknownNameError,
    UnreadableSourceError,
)
from unreel.core.judgement import Label

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


Columns = Mapping[str, str]

_NORMAL = re.compile(r"[^./][^/]*(?:/[^./][^/]*)*")
"""Pattern of a relative path without empty or dotted parts."""
_STEMS = ("manifest", "clips")
"""Names of the table in a folder, without suffix; the second counts if nothing else fits the folder."""


_TABLES: Mapping[BenchmarkLayout, tuple[str, ...]] = {
    BenchmarkLayout.DEEPTRACE: (deeptrace.TABLE,),
    BenchmarkLayout.REALITY: (video_reality_test.TABLE,),
    BenchmarkLayout.FOLDERS: (),
    BenchmarkLayout.VIDEO_FOLDER: METADATA,
}
"""File names of tables, for layouts that prescribe them."""
_MAPPED = frozenset({BenchmarkLayout.VIDEO_FOLDER, BenchmarkLayout.LIST, BenchmarkLayout.REALISM})
"""Layouts whose columns a user may map."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark on disk: iterate over it, as often as needed, for its entries and rejected rows."""

    layout: BenchmarkLayout
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
            raise build_unknown_layout_error(path, list(BenchmarkLayout), mapping)
        if len(layouts) > 1:
            problem = f"could be read as {' or '.join(layouts)}"
            remedy = f"Name the layout that you mean, for example --layout {layouts[0]}, or the table itself"
            raise UnreadableSourceError(str(path), problem, remedy)
        layout = layouts[0]
    if layout not in set(BenchmarkLayout):
        raise UnknownNameError("layout", layout, [known.value for known in BenchmarkLayout])
    chosen = BenchmarkLayout(layout)
    if mapping and chosen not in _MAPPED:
        raise InvalidSettingError(
            "mapping", f"layout {chosen.value} has fixed columns", "Leave the mapping out"
        )
    with add_layout_hint_to_errors(lambda: _list_other_layouts(path, chosen, mapping)):
        if path.is_file() and path.name not in _TABLES.get(chosen, (path.name,)):
            raise UnreadableSourceError(
                str(path), f"not what layout {chosen} is read from", "Name the folder"
            )
        root = path if path.is_dir() else path.parent
        table = (
            find_benchmark_table(path)
            if chosen in {BenchmarkLayout.LIST, BenchmarkLayout.REALISM}
            else path
        )
        readers: dict[BenchmarkLayout, Callable[[], Iterator[Row]]] = {
            BenchmarkLayout.DEEPTRACE: partial(deeptrace.read_deeptrace_benchmark, root),
            BenchmarkLayout.REALITY: partial(video_reality_test.read_reality_benchmark, root),
            BenchmarkLayout.FOLDERS: partial(read_folder_benchmark, root),
            BenchmarkLayout.LAV_DF: partial(read_lav_df_entries, path),
            BenchmarkLayout.ACTIVITY_FORENSICS: partial(read_activity_forensics_entries, path),
            BenchmarkLayout.VIF_COT: partial(read_vif_cot_entries, path),
            BenchmarkLayout.VIDEO_FOLDER: partial(
                read_video_folder, root, mapping, outside=outside
            ),
            BenchmarkLayout.LIST: partial(read_clip_table, table, mapping, outside=outside),
            BenchmarkLayout.REALISM: partial(read_realism_table, table, mapping, outside=outside),
        }
        list_others = partial(_list_other_layouts, path, chosen, mapping)
        may_leave = outside and chosen in _MAPPED

        def iter_rows() -> Iterator[Row]:
            with add_layout_hint_to_errors(list_others):
                rows = readers[chosen]()
                yield from rows if may_leave else reject_outside_links(rows, root)

        return Benchmark(chosen, root, iter_rows)


def find_matching_layouts(path: Path, mapping: Columns | None = None) -> list[BenchmarkLayout]:
    """Return every layout that fits `path`."""
    if not path.is_dir():
        if path.name == deeptrace.TABLE:
            return [BenchmarkLayout.DEEPTRACE]
        if path.name in METADATA:
            return [BenchmarkLayout.VIDEO_FOLDER]
        if path.name == video_reality_test.TABLE and video_reality_test.is_reality_benchmark(
            path.parent
        ):
            return [BenchmarkLayout.REALITY]
        if path.suffix.lower() in TABLE_SUFFIXES:
            return _list_table_layouts(path, mapping)
        return detect_segment_file_layouts(path)
    layouts = []
    if find_file_inside_folder(path, deeptrace.TABLE):
        layouts.append(BenchmarkLayout.DEEPTRACE)
    if video_reality_test.is_reality_benchmark(path):
        layouts.append(BenchmarkLayout.REALITY)
    if find_metadata_tables(path):
        layouts.append(BenchmarkLayout.VIDEO_FOLDER)
    if (path / REAL).is_dir() and (path / GENERATED).is_dir():
        layouts.append(BenchmarkLayout.FOLDERS)
    for stem in _STEMS:
        if stem == _STEMS[0] or not layouts:
            for table in _find_tables(path, stem):
                layouts.extend(_list_table_layouts(table, mapping))
    return layouts


def _find_tables(folder: Path, stem: str) -> list[Path]:
    names = [f"{stem}{suffix}" for suffix in TABLE_SUFFIXES]
    return [table for name in names if (table := find_file_inside_folder(folder, name))]


def _list_table_layouts(table: Path, mapping: Columns | None) -> list[BenchmarkLayout]:
    binding = map_fields_to_columns(str(table), read_table_column_names(table), mapping)
    if "location" not in binding:
        return []
    if binding.has_label_column:
        return [BenchmarkLayout.LIST]
    return [BenchmarkLayout.REALISM] if has_score_columns(binding) else []


def _list_other_layouts(
    path: Path, chosen: BenchmarkLayout, mapping: Columns | None
) -> list[BenchmarkLayout]:
    return [layout for layout in find_matching_layouts(path, mapping) if layout is not chosen]


def find_benchmark_table(path: Path) -> Path:
    """Return the table at `path`, or the table `manifest` or else `clips` in the directory `path`."""
    if not path.is_dir():
        return path
    tables = next((found for stem in _STEMS if (found := _find_tables(path, stem))), [])
    if len(tables) == 1:
        return tables[0]
    raise UnreadableSourceError(
        str(path),
        "not a single table",
        f"Name the table itself, or call it one of {', '.join(f'manifest{s}' for s in TABLE_SUFFIXES)}",
    )


def read_realism_table(
    table: Path, mapping: Mapping[str, str] | None = None, *, outside: bool = False
) -> Iterator[Row]:
    """Yield an entry or a rejection for each row of VideoRealBench, a table of realism scores.

    The paper publishes no layout, so unreel defines this one. Alternative column names are in
    `unreel.benchmarks.columns.KNOWN`; a mapping can set any other name. Without a label column, all
    clips are labelled generated. Columns:

    | column | meaning |
    |---|---|
    | `video` | path or URL of the clip |
    | `video_id` | name of the clip; the path if missing |
    | `split` | `train` (2,309 rows in the paper) or `test` (988) |
    | `model`, `prompt` | creator of the clip, and its text prompt |
    | `error_family` | `human-states`, `object-states`, `human-object-interactions`; optional |
    | `score`, `problem_description`, `standard_adherence` | the agreed rating, or instead: |
    | `score_1`, `problem_description_1`, `standard_adherence_1`, ... `_3` | rating per annotator |

    Raise `UnreadableSourceError` if the table has no location column or no score columns.
    """
    binding = map_fields_to_columns(
        str(table), read_table_column_names(table), mapping, outside=outside
    )
    if "location" not in binding or not has_score_columns(binding):
        raise UnreadableSourceError(
            str(table),
            "no columns with clips and scores",
            "Name them with a mapping: location=COLUMN score=COLUMN",
        )
    for number, row in enumerate(read_table_rows(table), start=1):
        if isinstance(row, Rejected):
            yield row
            continue
        try:
            entry = parse_entry(row, binding, label=Label.GENERATED)
            if entry.rating is None:
                cells.raise_invalid_cell(
                    "score", None, "Write the agreed score, or those of three annotators"
                )
            yield entry
        except InvalidValueError as error:
            yield Rejected(get_row_name(row, binding, number=number), str(error))
