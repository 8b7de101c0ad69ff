"""Source step: clips of a recipe's sources, probed, hashed and without repeated files."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from obstore.exceptions import BaseError
from pydantic import TypeAdapter, ValidationError

from unreel.benchmarks.cells import format_untrusted_name, is_url, require_printable_path
from unreel.benchmarks.columns import map_fields_to_columns
from unreel.benchmarks.entry import BenchmarkLayout, Entry, Rejected
from unreel.benchmarks.folder_layout import VIDEO_SUFFIXES, reject_outside_links, walk_videos
from unreel.benchmarks.loader import find_matching_layouts, open_benchmark
from unreel.benchmarks.table_entries import LABELS, UNKNOWN_CREATOR, get_row_name, parse_entry
from unreel.benchmarks.tables import TABLE_SUFFIXES, read_table_column_names, read_table_rows
from unreel.benchmarks.unique_names import NAMED_BEFORE
from unreel.benchmarks.video_folder import METADATA, find_metadata_tables
from unreel.core.clip import UNKNOWN_CLIP, Clip, ClipFacts, ClipId, Generated, Origin, Real
from unreel.core.content_ids import compute_clip_id, digest
from unreel.core.errors import (
    InvalidSettingError,
    InvalidValueError,
    MediaError,
    UnreadableSourceError,
)
from unreel.core.failure import Failure
from unreel.core.input_files import parse_json_object
from unreel.core.judgement import Label
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import read_clip_id
from unreel.curation.recipe import SourceRecipeSection
from unreel.curation.segment import (
    GIVE_LICENCE,
    NO_LICENCE,
    REJECTED,
    ClipSegment,
    CurationJob,
    CurationState,
    CurationStepResult,
    ExcludedSegment,
    ExcludedSegmentWriter,
    ReiterableStream,
    SegmentExclusions,
    SegmentWorkDirectory,
    WorkingTable,
    deduplicate_segments,
    write_working_table,
)
from unreel.curation.step_execution import CurationStepRequest, Given, VersionedCurationStep
from unreel.engine.downloads import download_file
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import ClipAccessSettings, compute_file_identity
from unreel.media.reader import MediaReader


@dataclass(frozen=True, slots=True)
class ListedStoreObject:
    """Object in a store: path below the prefix, size and ETag."""

    path: str
    size_bytes: int
    tag: str


_OBJECT = TypeAdapter(ListedStoreObject)


def list_store_objects_cached(
    prefix: StorageLocation, *, keep_in: StorageLocation
) -> Iterator[ListedStoreObject]:
    """Yield the store objects under `prefix`, sorted by path, from a cached listing if there is one.

    The cache is in `listings/` below `keep_in`: delete it to list again.
    """
    name = f"listings/{digest('listing', prefix.uri)[:32]}.jsonl"
    try:
        text = keep_in.read(name)
    except FileNotFoundError:
        try:
            objects = [
                ListedStoreObject(item["path"], item["size"], item["e_tag"] or "")
                for chunk in prefix.objects().list()
                for item in chunk
            ]
        except BaseError as error:
            raise UnreadableSourceError(
                prefix.uri, f"cannot list it: {error}", "Check its address, bucket and keys"
            ) from error
        objects.sort(key=lambda item: item.path)
        text = b"".join(json.dumps(asdict(item)).encode() + b"\n" for item in objects)
        keep_in.put(name, text)
    for line in filter(None, text.split(b"\n")):
        try:
            yield _OBJECT.validate_python(parse_json_object(line))
        except (InvalidValueError, ValidationError) as error:
            raise UnreadableSourceError(
                (keep_in / name).uri,
                "not a listing of a store",
                "Remove it: the store is listed again",
            ) from error


FILES = "files"
"""Layout of a folder that contains only videos."""
STORE = "s3://"


@dataclass(frozen=True, slots=True)
class SourceClip:
    """Clip that a source lists: metadata and location of the file."""

    entry: Entry
    location: str
    mark: str
    """Identity of the file, from its size and modification time or ETag; it differs for a changed file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReadContext:
    """Context for reading sources: recipe folder, storage access and location of the cache."""

    root: Path
    """Folder of the recipe, to which paths are relative."""
    access: ClipAccessSettings
    place: StorageLocation
    """Location of the cached listings of stores."""


def list_source_clips(
    sections: Iterable[SourceRecipeSection], context: SourceReadContext
) -> Iterator[SourceClip | Rejected]:
    """Yield the clips of all sources in order; names are not checked for duplicates."""
    for section in sections:
        prefix = f"{section.name}/" if section.name else ""
        read = _iter_store_clips if is_url(section.path) else _iter_local_clips
        for row in islice(read(section, context), section.limit):
            if isinstance(row, Rejected):
                yield Rejected(f"{prefix}{row.name}", row.why)
                continue
            entry = row.entry
            origin = entry.origin
            if isinstance(origin, Generated) and origin.creator == UNKNOWN_CREATOR:
                origin = replace(origin, creator=section.creator or UNKNOWN_CREATOR)
            entry = replace(
                entry,
                name=f"{prefix}{entry.name}",
                origin=origin,
                licence=entry.licence or section.licence,
                source=entry.source or section.source,
                group=entry.group or section.group,
                split="",
            )
            yield replace(row, entry=entry)


def _iter_local_clips(
    section: SourceRecipeSection, context: SourceReadContext
) -> Iterator[SourceClip | Rejected]:
    path, outside = context.root / section.path, context.access.outside
    if not path.exists():
        raise UnreadableSourceError(str(path), "no such file or folder", "Check source.path")
    folder = path if path.is_dir() else path.parent
    rows = _iter_local_entries(path, section, outside=outside)
    for row in rows if outside else reject_outside_links(rows, folder):
        if isinstance(row, Rejected):
            yield row
        else:
            location = row.location if is_url(row.location) else str(folder / row.location)
            yield SourceClip(row, location, compute_file_identity(location))


def _iter_local_entries(
    path: Path, section: SourceRecipeSection, *, outside: bool
) -> Iterator[Entry | Rejected]:
    layout = section.layout
    if not layout:
        layouts = find_matching_layouts(path, section.columns or None)
        if len(layouts) == 1:
            layout = layouts[0]
        elif not layouts:
            layout = FILES if path.is_dir() else BenchmarkLayout.LIST
    if layout == FILES:
        return _iter_video_entries(walk_videos(path), section)
    if layout == BenchmarkLayout.LIST and path.is_file():
        return _iter_table_entries(path, section, outside=outside)
    if layout == BenchmarkLayout.VIDEO_FOLDER:
        tables = [path] if path.is_file() else find_metadata_tables(path)
        return (
            row
            for table in tables
            for row in _iter_table_entries(
                table,
                section,
                below=("" if path.is_file() or table.parent == path else f"{table.parent.name}/"),
                outside=outside,
            )
        )
    mapping = section.columns or None
    return open_benchmark(path, layout, mapping=mapping, outside=outside).read()


def _iter_table_entries(
    table: Path, section: SourceRecipeSection, *, below: str = "", outside: bool = False
) -> Iterator[Entry | Rejected]:
    """Yield a source table's rows as entries; paths start from its directory, `below` in the source."""
    binding = map_fields_to_columns(
        table.name, read_table_column_names(table), section.columns or None, outside=outside
    )
    if "location" not in binding:
        raise UnreadableSourceError(
            str(table),
            "no column contains the location",
            'Name it: columns = { location = "COLUMN" }',
        )
    if "label" not in binding and section.label is None:
        raise UnreadableSourceError(
            str(table),
            "no column contains the label",
            'Give source.label = "real" or "generated", or its column',
        )
    for number, row in enumerate(read_table_rows(table), start=1):
        if isinstance(row, Rejected):
            yield row
            continue
        try:
            entry = parse_entry(row, binding, label=section.label)
        except InvalidValueError as error:
            yield Rejected(get_row_name(row, binding, number=number), str(error))
            continue
        stays = is_url(entry.location) or entry.location.startswith("/")
        location = entry.location if stays else below + entry.location
        name = location if entry.name == entry.location else entry.name
        yield replace(entry, name=name, location=location)


def _iter_video_entries(
    names: Iterable[str | Rejected], section: SourceRecipeSection
) -> Iterator[Entry | Rejected]:
    for name in names:
        if isinstance(name, Rejected):
            yield name
            continue
        try:
            path = require_printable_path(name)
            yield Entry(name=path, location=path, origin=_build_clip_origin(path, section))
        except InvalidValueError as error:
            yield Rejected(format_untrusted_name(name), str(error))


def _build_clip_origin(location: str, section: SourceRecipeSection) -> Origin:
    """Return the origin of the clip at `location`, real or generated.

    It depends on the label in the recipe or else on the first directory of the path.
    """
    first, *folders = PurePosixPath(location).parts[:-1] or [""]
    label = section.label or LABELS.get(first)
    match label:
        case Label.REAL:
            return Real()
        case Label.GENERATED:
            inside = folders if section.label is None else ()
            creator, *setting = inside or [UNKNOWN_CREATOR]
            return Generated(creator=creator, setting="/".join(setting))
        case _:
            raise InvalidSettingError(
                "source.label",
                f"the label of {location} is unknown",
                'Give label = "real" or "generated", or keep clips below real/ and generated/',
            )


def _iter_store_clips(
    section: SourceRecipeSection, context: SourceReadContext
) -> Iterator[SourceClip | Rejected]:
    uri, options = section.path.rstrip("/"), context.access.storage
    if not uri.startswith(STORE):
        raise InvalidSettingError(
            "source.path", f"cannot use {uri!r}", "Name a folder, a table or s3://bucket/prefix"
        )
    folder, _, name = uri.rpartition("/")
    if PurePosixPath(uri).suffix.lower() in TABLE_SUFFIXES:
        prefix, tables = StorageLocation(folder, options), [name]
        objects: dict[str, ListedStoreObject] = {}
    else:
        prefix = StorageLocation(uri, options)
        listed = list_store_objects_cached(prefix, keep_in=context.place)
        objects = {item.path: item for item in listed}
        tables = [path for path in objects if PurePosixPath(path).name in METADATA]
    for table in tables:
        below = table.rpartition("/")[0]
        with _open_table_copy((prefix / table).uri, context.access) as copy:
            for row in _iter_table_entries(copy, section, below=f"{below}/" if below else ""):
                yield row if isinstance(row, Rejected) else _build_store_clip(prefix, row, objects)
    if not tables:
        videos = (path for path in objects if PurePosixPath(path).suffix.lower() in VIDEO_SUFFIXES)
        for row in _iter_video_entries(videos, section):
            yield row if isinstance(row, Rejected) else _build_store_clip(prefix, row, objects)


def get_source_store(section: SourceRecipeSection) -> str | None:
    """Return the store prefix that contains the clips of a source; `None` for a local source."""
    uri = section.path.rstrip("/")
    if not uri.startswith(STORE):
        return None
    is_table = PurePosixPath(uri).suffix.lower() in TABLE_SUFFIXES
    return uri.rpartition("/")[0] if is_table else uri


def _build_store_clip(
    location: StorageLocation, entry: Entry, objects: dict[str, ListedStoreObject]
) -> SourceClip:
    if is_url(entry.location):
        return SourceClip(entry, entry.location, compute_file_identity(entry.location))
    uri, known = (location / entry.location).uri, objects.get(entry.location)
    tag = "" if known is None else f"{known.size_bytes} {known.tag}"
    return SourceClip(entry, uri, digest("object", uri, tag))


@contextmanager
def _open_table_copy(table: str, access: ClipAccessSettings) -> Iterator[Path]:
    named = replace(access, named=(*access.named, table))
    with TemporaryDirectory(prefix="unreel-") as folder:
        name = f"table{PurePosixPath(table).suffix.lower()}"
        try:
            with OutputDirectory(Path(folder)).create(name) as file:
                download_file(table, file, policy=named.reach, storage=named.storage)
        except MediaError as error:
            raise UnreadableSourceError(
                table, error.failure.detail, "Check its address and keys"
            ) from error
        yield Path(folder) / name


_STEP = "ingest"
_ENTRY = TypeAdapter(Entry)
_TEXTS = ("name", "location", "mark", "licence")


def write_source_listing(
    listed: Iterable[SourceClip | Rejected], directory: SegmentWorkDirectory
) -> tuple[WorkingTable, SegmentExclusions]:
    """Write the `listed` clips to a table sorted by name, and the rejected ones as exclusions."""
    import pyarrow as pa

    writer = ExcludedSegmentWriter(directory.folder, "listing")

    def iter_rows() -> Iterator[dict[str, Any]]:
        for row in listed:
            if isinstance(row, Rejected):
                writer.add(ExcludedSegment(row.name, _STEP, REJECTED, row.why))
            else:
                yield {
                    "name": row.entry.name,
                    "location": row.location,
                    "mark": row.mark,
                    "licence": row.entry.licence,
                    "entry": _ENTRY.dump_json(row.entry),
                }

    schema = pa.schema([*((name, pa.string()) for name in _TEXTS), ("entry", pa.binary())])
    rows = write_working_table(directory.folder, "listing.rows", iter_rows(), schema)
    return rows.by_name(), writer.end()


def filter_source_listing(
    table: WorkingTable, directory: SegmentWorkDirectory, *, require_licence: bool
) -> tuple[WorkingTable, SegmentExclusions]:
    """Select the first clip of each name, with a licence if `require_licence`; also return the exclusions."""
    leaving = ExcludedSegmentWriter(directory.folder, "listing-sifted")
    keep = np.ones(len(table), np.bool_)
    index, before = 0, None
    for batch in table.batches(("name", "location", "licence")):
        for row in batch.to_pylist():
            name, location = row["name"], row["location"]
            if name == before:
                leaving.add(ExcludedSegment(name, _STEP, REJECTED, NAMED_BEFORE))
                keep[index] = False
            elif require_licence and not row["licence"]:
                detail = f"the clip has no licence. {GIVE_LICENCE}"
                leaving.add(ExcludedSegment(name, _STEP, NO_LICENCE, detail, location))
                keep[index] = False
            index, before = index + 1, name
    return table.where(keep), leaving.end()


def read_source_listing(table: WorkingTable) -> Iterator[SourceClip]:
    """Read the listing table and yield its rows as source clips."""
    for batch in table.batches(("entry", "location", "mark")):
        for row in batch.to_pylist():
            yield SourceClip(_ENTRY.validate_json(row["entry"]), row["location"], row["mark"])


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestedFile:
    """Result of ingesting a file: the hash of its bytes and the properties of its streams."""

    clip: ClipId
    facts: ClipFacts


INGEST = VersionedCurationStep(name="ingest", version=1, finds=TypeAdapter(IngestedFile))


def run_source_step(
    sections: Sequence[SourceRecipeSection], job: CurationJob, state: CurationState
) -> CurationState:
    """Ingest the clips of all sources as segments, sorted by name and deduplicated by content."""
    context, directory = job.context, job.directory
    reading = SourceReadContext(root=job.root, access=context.access, place=context.place)
    listing, rejected = write_source_listing(list_source_clips(sections, reading), directory)
    usable, refused = filter_source_listing(
        listing, directory, require_licence=job.recipe.require_licence
    )

    def iter_requests() -> Iterator[CurationStepRequest]:
        for clip in read_source_listing(usable):
            yield CurationStepRequest(
                clip=UNKNOWN_CLIP,
                name=clip.entry.name,
                location=clip.location,
                given={"mark": clip.mark},
            )

    results = context.ask(INGEST, ReiterableStream(iter_requests), probe_and_hash_file)

    def iter_segments() -> Iterator[ClipSegment | ExcludedSegment]:
        for source, file in zip(read_source_listing(usable), results, strict=True):
            entry, location = source.entry, source.location
            if isinstance(file, Failure):
                reason = file.reason.value
                yield ExcludedSegment(entry.name, INGEST.name, reason, file.detail, location)
            else:
                id_ = read_clip_id(file.clip, INGEST.name)
                clip = Clip(id=id_, location=location, facts=file.facts)
                length_s = file.facts.video.duration_s
                yield ClipSegment(entry=entry, clip=clip, source=clip.id, length_s=length_s)

    ingested = directory.write(INGEST.name, iter_segments())
    unique, doubled = deduplicate_segments(ingested.segments, step=INGEST.name)
    same = directory.write_exclusions("ingest-same", doubled)
    excluded = rejected + refused + ingested.left_out + same
    return state.after(CurationStepResult(segments=unique, left_out=excluded))


def probe_and_hash_file(reader: MediaReader, file: Path, _given: Given) -> IngestedFile | Failure:
    """Return the hash of the file's bytes and the properties of its streams."""
    facts = reader.probe(file)
    if isinstance(facts, Failure):
        return facts
    return IngestedFile(clip=compute_clip_id(file), facts=facts)
