"""Clips of a source, with label, creator, licence and origin."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from unreel.benchmarks.cells import is_url, quote_found_path, show_name
from unreel.benchmarks.columns import bind
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.folders import VIDEO_SUFFIXES, reject_outside_links, walk_videos
from unreel.benchmarks.layout import BenchmarkLayout
from unreel.benchmarks.loader import find_layouts, open_benchmark
from unreel.benchmarks.records import LABELS, UNKNOWN_CREATOR, name_of, parse_entry
from unreel.benchmarks.tables import TABLE_SUFFIXES, read_column_names, read_table
from unreel.benchmarks.video_folder import METADATA, find_metadata
from unreel.core.clip import Generated, Origin, Real
from unreel.core.errors import (
    InvalidSettingError,
    InvalidValueError,
    MediaError,
    UnreadableSourceError,
)
from unreel.core.identity import digest
from unreel.core.judgement import Label
from unreel.core.output_files import OutputDirectory
from unreel.curation.recipe import SourceSection
from unreel.curation.source.store_listing import StoredObject, list_once
from unreel.engine.downloads import fetch
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import StorageAccess, compute_file_mark

FILES: Final = "files"
"""The layout of a folder that is nothing but videos."""
STORE: Final = "s3://"


@dataclass(frozen=True, slots=True)
class SourceClip:
    """Clip of a source: its metadata and the location of its bytes."""

    entry: Entry
    location: str
    mark: str
    """Another mark is another file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceContext:
    """Context for reading sources besides the recipe."""

    root: Path
    """Relative paths start here: the folder of the recipe."""
    access: StorageAccess
    place: StorageLocation
    """Listings of stores are kept here."""


def list_sources(
    sections: Iterable[SourceSection], around: SourceContext
) -> Iterator[SourceClip | Rejected]:
    """Yield all clips of all sources in order; a name may occur twice."""
    return (row for section in sections for row in _list_source(section, around))


def _list_source(section: SourceSection, around: SourceContext) -> Iterator[SourceClip | Rejected]:
    found = (
        _iter_store_clips(section, around)
        if is_url(section.path)
        else _iter_disk_clips(section, around)
    )
    for row in islice(found, section.limit):
        if isinstance(row, Rejected):
            yield Rejected(_format_source_name(row.name, section), row.why)
        else:
            yield replace(row, entry=_apply_section_defaults(row.entry, section))


def _format_source_name(name: str, section: SourceSection) -> str:
    return f"{section.name}/{name}" if section.name else name


def _apply_section_defaults(entry: Entry, section: SourceSection) -> Entry:
    origin = entry.origin
    if isinstance(origin, Generated) and origin.creator == UNKNOWN_CREATOR and section.creator:
        origin = replace(origin, creator=section.creator)
    return replace(
        entry,
        name=_format_source_name(entry.name, section),
        origin=origin,
        licence=entry.licence or section.licence,
        source=entry.source or section.source,
        group=entry.group or section.group,
        split="",
    )


def _iter_disk_clips(
    section: SourceSection, around: SourceContext
) -> Iterator[SourceClip | Rejected]:
    path, outside = around.root / section.path, around.access.outside
    if not path.exists():
        raise UnreadableSourceError(str(path), "no such file or folder", "Check source.path")
    folder = path if path.is_dir() else path.parent
    rows = _iter_disk_rows(path, section, outside=outside)
    for row in rows if outside else reject_outside_links(rows, folder):
        if isinstance(row, Rejected):
            yield row
        else:
            place = row.location if is_url(row.location) else str(folder / row.location)
            yield SourceClip(row, place, compute_file_mark(place))


def _iter_disk_rows(
    path: Path, section: SourceSection, *, outside: bool
) -> Iterator[Entry | Rejected]:
    layout = section.layout or _find_layout(path, section)
    if layout == FILES:
        return _iter_file_rows(walk_videos(path), section)
    if layout == BenchmarkLayout.LIST and path.is_file():
        return _iter_table_rows(path, section, outside=outside)
    if layout == BenchmarkLayout.VIDEO_FOLDER:
        tables = [path] if path.is_file() else find_metadata(path)
        return (
            row
            for table in tables
            for row in _iter_table_rows(
                table, section, below=_get_folder_prefix(table, path), outside=outside
            )
        )
    mapping = section.columns or None
    return open_benchmark(path, layout, mapping=mapping, outside=outside).read()


def _find_layout(path: Path, section: SourceSection) -> str | None:
    found = find_layouts(path, section.columns or None)
    if found:
        return found[0] if len(found) == 1 else None
    return FILES if path.is_dir() else BenchmarkLayout.LIST


def _get_folder_prefix(table: Path, root: Path) -> str:
    return "" if root.is_file() or table.parent == root else f"{table.parent.name}/"


def _iter_table_rows(
    table: Path, section: SourceSection, *, below: str = "", outside: bool = False
) -> Iterator[Entry | Rejected]:
    """Yield the rows of a table.

    Paths are relative to the directory of the table, which is `below` in the source.
    """
    binding = bind(table.name, read_column_names(table), section.columns or None, outside=outside)
    if "location" not in binding:
        remedy = 'Name it: columns = { location = "COLUMN" }'
        raise UnreadableSourceError(str(table), "no column holds the location", remedy)
    if "label" not in binding and section.label is None:
        remedy = 'Give source.label = "real" or "generated", or its column'
        raise UnreadableSourceError(str(table), "no column holds the label", remedy)
    for number, row in enumerate(read_table(table), start=1):
        if isinstance(row, Rejected):
            yield row
            continue
        try:
            entry = parse_entry(row, binding, label=section.label)
        except InvalidValueError as error:
            yield Rejected(name_of(row, binding, number=number), str(error))
            continue
        stays = is_url(entry.location) or entry.location.startswith("/")
        place = entry.location if stays else below + entry.location
        name = place if entry.name == entry.location else entry.name
        yield replace(entry, name=name, location=place)


def _iter_file_rows(
    names: Iterable[str | Rejected], section: SourceSection
) -> Iterator[Entry | Rejected]:
    for name in names:
        if isinstance(name, Rejected):
            yield name
            continue
        try:
            place = quote_found_path(name)
            yield Entry(name=place, location=place, origin=_build_origin(place, section))
        except InvalidValueError as error:
            yield Rejected(show_name(name), str(error))


def _build_origin(location: str, section: SourceSection) -> Origin:
    """Return the origin by the label in the recipe or, if missing, by the first directory of the path."""
    first, *rest = PurePosixPath(location).parts[:-1] or [""]
    label = section.label or LABELS.get(first)
    match label:
        case Label.REAL:
            return Real()
        case Label.GENERATED:
            inside = rest if section.label is None else ()
            creator, *setting = inside or [UNKNOWN_CREATOR]
            return Generated(creator=creator, setting="/".join(setting))
        case _:
            setting_name, problem = "source.label", f"nothing says whether {location} is real"
            remedy = 'Give label = "real" or "generated", or keep clips below real/ and generated/'
            raise InvalidSettingError(setting_name, problem, remedy)


def _iter_store_clips(
    section: SourceSection, around: SourceContext
) -> Iterator[SourceClip | Rejected]:
    uri, options = section.path.rstrip("/"), around.access.storage
    if not uri.startswith(STORE):
        setting, problem = "source.path", f"cannot use {uri!r}"
        raise InvalidSettingError(setting, problem, "Name a folder, a table or s3://bucket/prefix")
    folder, _, name = uri.rpartition("/")
    if _is_table(uri):
        with _open_table_copy(uri, around.access) as copy:
            table = _StoredTable(copy, name)
            yield from _iter_store_table(
                StorageLocation(folder, options), table, section=section, objects={}
            )
        return
    prefix = StorageLocation(uri, options)
    objects = {item.path: item for item in list_once(prefix, keep_in=around.place)}
    tables = [path for path in objects if PurePosixPath(path).name in METADATA]
    if tables:
        for name in tables:
            with _open_table_copy((prefix / name).uri, around.access) as copy:
                table = _StoredTable(copy, name)
                yield from _iter_store_table(prefix, table, section=section, objects=objects)
        return
    videos = (path for path in objects if PurePosixPath(path).suffix.lower() in VIDEO_SUFFIXES)
    for row in _iter_file_rows(videos, section):
        yield row if isinstance(row, Rejected) else _build_store_clip(prefix, row, objects)


@dataclass(frozen=True, slots=True)
class _StoredTable:
    """A copy of a table, and its path below the source's prefix."""

    copy: Path
    name: str


def _iter_store_table(
    prefix: StorageLocation,
    table: _StoredTable,
    *,
    section: SourceSection,
    objects: dict[str, StoredObject],
) -> Iterator[SourceClip | Rejected]:
    below = table.name.rpartition("/")[0]
    for row in _iter_table_rows(table.copy, section, below=f"{below}/" if below else ""):
        yield row if isinstance(row, Rejected) else _build_store_clip(prefix, row, objects)


def store_of(section: SourceSection) -> str | None:
    """Return the store prefix that contains the clips of a source; `None` for a local source."""
    uri = section.path.rstrip("/")
    if not uri.startswith(STORE):
        return None
    return uri.rpartition("/")[0] if _is_table(uri) else uri


def _is_table(uri: str) -> bool:
    return PurePosixPath(uri).suffix.lower() in TABLE_SUFFIXES


def _build_store_clip(
    prefix: StorageLocation, entry: Entry, objects: dict[str, StoredObject]
) -> SourceClip:
    if is_url(entry.location):
        return SourceClip(entry, entry.location, compute_file_mark(entry.location))
    place, known = (prefix / entry.location).uri, objects.get(entry.location)
    tag = "" if known is None else f"{known.size_bytes} {known.tag}"
    return SourceClip(entry, place, digest("object", place, tag))


@contextmanager
def _open_table_copy(table: str, access: StorageAccess) -> Iterator[Path]:
    """Yield a temporary local copy of the table of a source."""
    named = replace(access, named=(*access.named, table))
    with TemporaryDirectory(prefix="unreel-") as folder:
        name = f"table{PurePosixPath(table).suffix.lower()}"
        try:
            with OutputDirectory(Path(folder)).create(name) as file:
                fetch(table, file, reach=named.reach, storage=named.storage)
        except MediaError as error:
            remedy = "Check its address and keys"
            raise UnreadableSourceError(table, error.failure.detail, remedy) from error
        yield Path(folder) / name
