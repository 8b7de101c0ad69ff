"""Download of a public benchmark: plan, files in order, unpacking, table of clips, and the record of all that."""

import fcntl
import json
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import Field

from unreel.catalogue.adapters import ADAPTERS
from unreel.catalogue.entries import CatalogueBenchmark, HubDownload
from unreel.catalogue.hub import HubRevision, RemoteFile, download_file, resolve_revision
from unreel.catalogue.unpack import unpack_zip
from unreel.core.errors import InvalidSettingError, UnreadableSourceError, require_disk_space
from unreel.core.input_files import parse_json_object, read_limited_bytes
from unreel.core.output_files import OutputDirectory
from unreel.recipes.validation import RecipeSection, validate_recipe_sections

RECORD = "unreel-download.json"
"""File in the folder of a download that states what is there."""
MANIFEST = "manifest.jsonl"
_LOCK = "unreel-download.lock"
_RECORD_BYTES = 256 << 20
_ARCHIVE = re.compile(r"(.+\.zip)(?:\.(\d{3}))?", re.IGNORECASE)


class DownloadedFile(RecipeSection):
    """A file of a download; an archive is deleted after it was unpacked."""

    path: str
    size: int | None = None
    sha256: str | None = None
    git_sha1: str | None = None
    is_unpacked: bool = False


class DownloadRecord(RecipeSection):
    """State of a download: the commit, the files, and the bytes that calls received which were not killed."""

    name: str
    repository: str
    revision: str
    """Full hash of the commit."""
    licence: str | None = None
    parts: tuple[str, ...] = ()
    """Patterns of the clips and archives that the user chose; empty for all."""
    files: tuple[DownloadedFile, ...] = ()
    n_bytes_received: int = 0
    n_bytes_received_twice: int = 0
    n_rows: int | None = None
    """Number of rows of the table that unreel wrote."""
    omitted: dict[str, int] = Field(default={})
    """Number of rows of the owner that the table leaves out, by reason."""
    is_complete: bool = False


@dataclass(frozen=True, kw_only=True)
class DownloadPlan:
    """Files of a benchmark that a download will fetch into `folder`."""

    entry: CatalogueBenchmark
    folder: Path
    record: DownloadRecord
    """Record of an earlier call, or a new one."""
    revision: HubRevision | None
    """`None` if everything is here."""
    files: tuple[RemoteFile, ...]
    """Missing files, tables first."""
    n_bytes: int
    """Bytes of `files` that are not here yet."""
    n_unpacked_bytes: int
    """Estimated bytes of the files in archives: those of the archives, as videos hardly compress."""
    n_free_bytes: int


def read_download_record(folder: Path) -> DownloadRecord | None:
    """Return the record of the download in `folder`; `None` if there is none.

    Raise `UnreadableSourceError` if the record is damaged.
    """
    path = folder / RECORD
    if not path.is_file():
        return None
    remedy = "Delete the file and run `unreel benchmarks get` again"
    try:
        document = parse_json_object(read_limited_bytes(path, most=_RECORD_BYTES, remedy=remedy))
        return validate_recipe_sections(DownloadRecord, document)
    except ValueError as error:
        raise UnreadableSourceError(str(path), str(error), remedy) from error


def plan_download(
    entry: CatalogueBenchmark, folder: Path, *, revision: str | None, parts: Sequence[str]
) -> DownloadPlan:
    """List the files of `entry` that are missing in `folder`, at the commit of an earlier call if there was one.

    Raises:
        InvalidSettingError: unreel does not download the benchmark, the folder has another one, or a
            part matches no file.
        UnreadableSourceError: The hub gives no access.
    """
    download, hub_ids = entry.download, entry.hub_ids
    if download is None or hub_ids is None or not hub_ids.value:
        raise InvalidSettingError("name", f"unreel does not download {entry.name}", "See its steps")
    repository = hub_ids.value[0]
    record = read_download_record(folder)
    if record is not None and (record.name, record.repository) != (entry.name, repository):
        problem = f"{folder} has the files of {record.name}, not of {entry.name}"
        raise InvalidSettingError("--out", problem, "Name another folder")
    if record is not None and revision and not record.revision.startswith(revision):
        problem = f"{folder} has the files of commit {record.revision}"
        raise InvalidSettingError("--revision", problem, "Name another folder with --out")
    n_free = shutil.disk_usage(_find_existing_folder(folder)).free
    is_same = record is not None and (not parts or set(parts) == set(record.parts))
    if record and is_same and record.is_complete and not _list_missing(record, folder):
        return DownloadPlan(
            entry=entry,
            folder=folder,
            record=record,
            revision=None,
            files=(),
            n_bytes=0,
            n_unpacked_bytes=0,
            n_free_bytes=n_free,
        )
    stated = entry.revision.setting if entry.revision else None
    commit = resolve_revision(repository, record.revision if record else revision or stated)
    chosen = tuple(dict.fromkeys([*(record.parts if record else ()), *parts]))
    if record and record.is_complete and not record.parts:
        chosen = ()  # all files were chosen before
    files = _select_files(commit, download, chosen)
    unpacked = {file.path for file in record.files if file.is_unpacked} if record else set()
    missing = tuple(file for file in files if file.path not in unpacked)
    present = {file.path: _get_size(folder / file.path) for file in missing}
    partial = {
        file.path: sum(path.stat().st_size for path in folder.glob(f"{_escape(file.path)}.*.part"))
        for file in missing
    }
    n_missing = {
        file.path: 0
        if present[file.path] == file.size
        else max(0, (file.size or 0) - partial[file.path])
        for file in missing
    }
    known = {file.path: file for file in (record.files if record else ())}
    return DownloadPlan(
        entry=entry,
        folder=folder,
        record=DownloadRecord(
            name=entry.name,
            repository=repository,
            revision=commit.sha,
            licence=commit.licence,
            parts=chosen,
            files=tuple(
                known.get(file.path)
                or DownloadedFile(
                    path=file.path, size=file.size, sha256=file.sha256, git_sha1=file.git_sha1
                )
                for file in files
            ),
            n_bytes_received=record.n_bytes_received if record else 0,
            n_bytes_received_twice=record.n_bytes_received_twice if record else 0,
        ),
        revision=commit,
        files=missing,
        n_bytes=sum(n_missing.values()),
        n_unpacked_bytes=sum(file.size or 0 for file in missing if _ARCHIVE.fullmatch(file.path)),
        n_free_bytes=n_free,
    )


def run_download(
    plan: DownloadPlan,
    *,
    on_bytes: Callable[[str, int], None] = lambda _part, _n: None,
    on_wait: Callable[[], None] = lambda: None,
) -> DownloadRecord:
    """Download and unpack the files of `plan`, write the table of clips, and return the finished record.

    A call after a kill continues where the earlier one ended. Only one process works in a folder;
    another one calls `on_wait` and waits. `on_bytes` receives the part of the work and the change
    of its finished bytes.

    Raises:
        UnreadableSourceError: A file has the wrong hash, may not be read, or is an unsafe archive.
        MachineError: The hub cannot be reached, or the disk is full.
    """
    download = plan.entry.download
    if plan.revision is None or download is None:
        return plan.record
    output = OutputDirectory(plan.folder, published=True)
    record = plan.record
    with _lock_folder(output, on_wait):
        finished = read_download_record(plan.folder)
        if finished is not None and finished.is_complete and finished.parts == record.parts:
            return finished  # by the process that had the lock
        require_disk_space(plan.folder, plan.n_bytes + plan.n_unpacked_bytes)
        for file in record.files:
            if file.is_unpacked:  # a call may have been killed before it deleted the archive
                output.remove(file.path)
        _write_record(output, record)
        received = Counter[str]()
        try:
            for missing in plan.files:
                n, n_twice = download_file(
                    missing, output, on_bytes=lambda change: on_bytes("download", change)
                )
                received.update(all=n, twice=n_twice)
        finally:
            record = record.model_copy(
                update={
                    "n_bytes_received": record.n_bytes_received + received["all"],
                    "n_bytes_received_twice": record.n_bytes_received_twice + received["twice"],
                }
            )
            _write_record(output, record)
        for parts in _group_archives([file.path for file in plan.files]):
            unpack_zip(parts, output, on_bytes=lambda change: on_bytes("unpacking", change))
            files = (
                file.model_copy(update={"is_unpacked": True}) if file.path in parts else file
                for file in record.files
            )
            record = record.model_copy(update={"files": tuple(files)})
            _write_record(output, record)
            for part in parts:
                output.remove(part)
        update: dict[str, object] = {"is_complete": True}
        if download.adapter is not None:
            update |= _write_manifest(download.adapter, output)
        record = record.model_copy(update=update)
        _write_record(output, record)
    return record


def _select_files(
    commit: HubRevision, download: HubDownload, parts: Sequence[str]
) -> tuple[RemoteFile, ...]:
    """Return the files to download, tables first; raise if a pattern matches none."""
    tables = [file for file in commit.files if _matches(file.path, download.annotations)]
    linked = [
        RemoteFile(url=file.url, path=file.path, sha256=file.sha256) for file in download.linked
    ]
    media = [
        file for file in commit.files if _matches(file.path, download.media) and file not in tables
    ]
    for part in parts:
        if not any(fnmatchcase(file.path, part) for file in media):
            names = ", ".join(file.path for file in media[:8])
            raise InvalidSettingError(
                "--part", f"no file matches {part!r}", f"Name some of the files, such as {names}"
            )
    if parts:
        media = [file for file in media if _matches(file.path, parts)]
    for patterns, files in ((download.annotations, tables), (download.media, media)):
        if patterns and not files:
            raise UnreadableSourceError(
                commit.page,
                f"commit {commit.sha} has no file {' or '.join(patterns)}",
                "The owner may have renamed the files: choose an earlier commit with --revision",
            )
    return (*tables, *linked, *media)


def _matches(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def _group_archives(paths: Sequence[str]) -> Iterator[list[str]]:
    """Yield the parts of each zip file in order; a whole one has one part."""
    groups = defaultdict(list)
    for path in paths:
        if archive := _ARCHIVE.fullmatch(path):
            groups[archive[1]].append(path)
    for parts in groups.values():
        yield sorted(parts)


def _write_manifest(adapter: str, output: OutputDirectory) -> dict[str, object]:
    """Write the table of clips; return the number of its rows, and of those left out by reason."""
    n_rows, omitted = 0, Counter[str]()
    try:
        with output.create_text(MANIFEST) as table:
            for row in ADAPTERS[adapter](output.root):
                if (reason := row.get("omitted")) is not None:
                    omitted[str(reason)] += 1
                    continue
                table.write(json.dumps(row) + "\n")
                n_rows += 1
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        problem = f"the files are not as the catalogue states ({type(error).__name__}: {error})"
        raise UnreadableSourceError(
            str(output.root), problem, "Choose an earlier commit with --revision and --out"
        ) from error
    return {"n_rows": n_rows, "omitted": dict(omitted)}


def _list_missing(record: DownloadRecord, folder: Path) -> list[str]:
    sizes = {file: _get_size(folder / file.path) for file in record.files if not file.is_unpacked}
    return [
        file.path for file, size in sizes.items() if size is None or file.size not in {None, size}
    ]


def _get_size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _escape(pattern: str) -> str:
    return re.sub(r"([\[\]*?])", r"[\1]", pattern)


def _find_existing_folder(folder: Path) -> Path:
    return next(path for path in (folder, *folder.absolute().parents) if path.is_dir())


def _write_record(output: OutputDirectory, record: DownloadRecord) -> None:
    output.write(RECORD, record.model_dump_json(indent=1).encode())


@contextmanager
def _lock_folder(output: OutputDirectory, on_wait: Callable[[], None]) -> Iterator[None]:
    with output.append(_LOCK) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
