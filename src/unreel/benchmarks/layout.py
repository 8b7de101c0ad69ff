"""Layouts of benchmarks by name: how each is recognised and read; other packages can add some."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from unreel.benchmarks.entry import BenchmarkLayout, Row
from unreel.core.registry import LazyImport, NamedObjectRegistry

Columns = Mapping[str, str]
"""Columns of a table by the fields that they contain, as a user maps them."""
TableColumns = tuple[Path, Iterable[str], Mapping[str, str]]
"""Table of a benchmark, its columns, and the field that each known column is read as."""

COLUMN_ROWS = 1000
"""Number of rows of a JSON document whose keys are listed as its columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutReader:
    """How a layout is recognised and read."""

    matches: Callable[[Path, Columns | None], bool]
    """Returns whether a folder or file has the layout; the second argument is the user's mapping."""
    read: Callable[[Path, Columns | None, bool], Iterator[Row]]
    """Reads the entries; the third argument is whether a table may name files outside its folder."""
    list_columns: Callable[[Path, Columns | None], Iterable[TableColumns]] = lambda *_: ()
    """Lists the columns of the tables, which `unreel benchmarks check` shows."""
    tables: tuple[str, ...] | None = None
    """Names of the files that the layout is read from, () for folders; `None` for any file."""
    takes_mapping: bool = False
    """Whether a user may map columns, and let a table name files outside its folder."""


LAYOUTS: NamedObjectRegistry[LayoutReader] = NamedObjectRegistry(
    "layout",
    {
        BenchmarkLayout.DEEPTRACE: LazyImport("unreel.benchmarks.deeptrace:LAYOUT"),
        BenchmarkLayout.REALITY: LazyImport("unreel.benchmarks.video_reality_test:LAYOUT"),
        BenchmarkLayout.VIDEO_FOLDER: LazyImport("unreel.benchmarks.video_folder:LAYOUT"),
        BenchmarkLayout.FOLDERS: LazyImport("unreel.benchmarks.folder_layout:LAYOUT"),
        BenchmarkLayout.LIST: LazyImport("unreel.benchmarks.clip_tables:LIST_LAYOUT"),
        BenchmarkLayout.REALISM: LazyImport("unreel.benchmarks.clip_tables:REALISM_LAYOUT"),
        BenchmarkLayout.LAV_DF: LazyImport(
            "unreel.benchmarks.localisation.segment_files:LAV_DF_LAYOUT"
        ),
        BenchmarkLayout.ACTIVITY_FORENSICS: LazyImport(
            "unreel.benchmarks.localisation.segment_files:ACTIVITY_FORENSICS_LAYOUT"
        ),
        BenchmarkLayout.VIF_COT: LazyImport(
            "unreel.benchmarks.localisation.segment_files:VIF_COT_LAYOUT"
        ),
    },
    group="unreel.layouts",
)
"""Layouts in the order in which they are tried; those of other packages follow."""


def list_layouts() -> list[str]:
    """Return the names of all layouts: unreel's in display order, then those of other packages."""
    own = [layout.value for layout in BenchmarkLayout]
    return own + [name for name in LAYOUTS.names() if name not in own]
