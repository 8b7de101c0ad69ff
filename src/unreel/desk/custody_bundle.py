"""Custody bundles: zip files with the evidence of cases and a manifest of hashes, and their check.

A bundle is written as a stream, without compression and without times, so that the same files give
the same bytes: `verify_custody_bundle` writes it again and finds any byte that differs.
"""

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Final, Literal

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from unreel.core.chunks import READ_BYTES
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.output_files import OutputDirectory, open_regular_user_file
from unreel.core.safe_names import make_safe_file_name
from unreel.core.safe_text import sanitise_line
from unreel.desk.case_store import LOG, CaseRecord
from unreel.desk.keyframes import KEYFRAMES
from unreel.desk.review_case import EVIDENCE
from unreel.desk.signature import NAMESPACE, check_signature

MANIFEST: Final = "manifest.json"
SIGNATURE: Final = f"{MANIFEST}.sig"
_PLAIN_PATH: Final = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*")
"""Pattern of the paths in bundles, so that no program unpacks a file outside its folder."""
_MAX_BYTES: Final = 64 << 20
"""Maximum size of a manifest or a signature in bytes."""
_GUIDE: Final = f"""\
{MANIFEST} lists the SHA-256 of every file of this bundle, and of the original clip.
Check all of it:      unreel desk verify BUNDLE.zip
Check the signature:  ssh-keygen -Y check-novalidate -n {NAMESPACE} -s {SIGNATURE} < {MANIFEST}
Check the signer:     ssh-keygen -Y verify -n {NAMESPACE} -s {SIGNATURE} -f ALLOWED_SIGNERS -I PERSON < {MANIFEST}
The verdicts are opinions of AI models and of people, not forensic proof.
"""

BundledFile = tuple[str, int, Callable[[], IO[bytes]]]
"""Path, size in bytes, and opener of one file of a bundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledCase:
    """Case of a bundle, with the name and SHA-256 of its original."""

    id: str
    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleManifest:
    """Content of `manifest.json`."""

    form: Literal["unreel-custody-bundle"] = "unreel-custody-bundle"
    version: Literal[1] = 1
    made_by: str
    made_at: str
    cases: tuple[BundledCase, ...]
    files: dict[str, str]
    """SHA-256 of all other files by their paths."""


_MANIFESTS: Final = TypeAdapter(BundleManifest)


@dataclass(frozen=True, slots=True, kw_only=True)
class CustodyBundleCheck:
    """Result of the check of a custody bundle: problems, number of files, originals and signature."""

    bundle: str
    is_intact: bool
    problems: tuple[str, ...]
    n_files: int = 0
    originals: tuple[BundledCase, ...] = ()
    signature: str = "The signature was not checked."


def iter_custody_bundle_bytes(
    cases: Sequence[CaseRecord], sign: Callable[[bytes], bytes] | None
) -> Iterator[bytes]:
    """Yield the bundle's bytes, a folder per case if several; `sign` signs the manifest in it."""
    digests: dict[str, str] = {}

    def iter_files() -> Iterator[BundledFile]:
        yield _build_bundled_file("VERIFY.txt", _GUIDE.encode())
        for number, case in enumerate(cases, start=1):
            stem = make_safe_file_name(Path(case.name).stem)
            yield from _iter_case_files(case, f"{number:03d}-{stem}/" if len(cases) > 1 else "")
        manifest = BundleManifest(
            made_by=f"unreel {version('unreel')}",
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            cases=tuple(BundledCase(id=c.id, name=c.name, sha256=c.clip) for c in cases),
            files=digests,
        )
        data = _MANIFESTS.dump_json(manifest, indent=2)
        yield _build_bundled_file(MANIFEST, data)
        if sign is not None:
            yield _build_bundled_file(SIGNATURE, sign(data))

    yield from _iter_zip_bytes(iter_files(), digests)


def verify_custody_bundle(path: Path, signers: Path | None = None) -> CustodyBundleCheck:
    """Check every byte of the custody bundle at `path`, and its signature if it has one.

    Raises:
        UnreadableSourceError: The file at `path` cannot be read.
    """
    try:
        return _check_bundle_entries(path, signers)
    except OSError as error:
        remedy = "Check the path and that you may read it"
        raise UnreadableSourceError(str(path), error.strerror or "unreadable", remedy) from error
    except (zipfile.BadZipFile, ValueError, LookupError, RuntimeError, EOFError) as error:
        reason = "its manifest is malformed" if isinstance(error, ValidationError) else str(error)
        problem = f"It is not an intact bundle: {sanitise_line(reason)}."
        return CustodyBundleCheck(bundle=str(path), is_intact=False, problems=(problem,))


def _check_bundle_entries(path: Path, signers: Path | None) -> CustodyBundleCheck:
    digests: dict[str, str] = {}
    with open_regular_user_file(path) as file, zipfile.ZipFile(file) as archive:
        _require_plain_entries(archive, file.seek(0, io.SEEK_END))
        data = archive.read(MANIFEST)
        signature = archive.read(SIGNATURE) if SIGNATURE in archive.namelist() else None
        entries = archive.infolist()
        files = ((e.filename, e.file_size, partial(archive.open, e)) for e in entries)
        rewritten = hashlib.sha256()
        for chunk in _iter_zip_bytes(files, digests):
            rewritten.update(chunk)
        file.seek(0)
        is_same = rewritten.digest() == hashlib.file_digest(file, "sha256").digest()
    manifest = _MANIFESTS.validate_json(data)
    listed = manifest.files
    present = {name: value for name, value in digests.items() if name not in {MANIFEST, SIGNATURE}}
    problems = [f"{sanitise_line(name)} is missing." for name in listed.keys() - present.keys()]
    for name in [name for name, value in present.items() if listed.get(name) != value]:
        problem = "was changed" if name in listed else "is not in the manifest"
        problems.append(f"{sanitise_line(name)} {problem}.")
    if not problems and not is_same:
        problems.append("Bytes outside of the listed files were changed.")
    text = "The bundle has no signature."
    try:
        if signature is not None:
            text = check_signature(data, signature, signers)
        elif signers is not None:
            problems.append(text)
    except InvalidValueError as error:
        problems.append(text := str(error))
    return CustodyBundleCheck(
        bundle=str(path),
        is_intact=not problems,
        problems=tuple(problems),
        n_files=len(listed),
        originals=manifest.cases,
        signature=text,
    )


def _require_plain_entries(archive: zipfile.ZipFile, n_bytes: int) -> None:
    """Raise `InvalidValueError` for entries that `_iter_zip_bytes` never writes, before they are read."""
    entries = archive.infolist()
    problem = ""
    if not all(_PLAIN_PATH.fullmatch(entry.filename) for entry in entries):
        problem = "a path leads outside the bundle or has unusual characters"
    elif len({entry.filename.casefold() for entry in entries}) < len(entries):
        problem = "two files have the same name"
    elif any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        problem = "a file is compressed"
    elif sum(entry.file_size for entry in entries) > n_bytes:
        problem = "its files overlap"
    elif any(e.file_size > _MAX_BYTES for e in entries if e.filename in {MANIFEST, SIGNATURE}):
        problem = f"the manifest or the signature is larger than {_MAX_BYTES} bytes"
    if problem:
        raise InvalidValueError(problem)


def _iter_case_files(case: CaseRecord, prefix: str) -> Iterator[BundledFile]:
    folder = OutputDirectory(case.folder)
    with folder.read(LOG) as log:
        yield _build_bundled_file(prefix + LOG, log.read())
    fields = to_jsonable_python(case, exclude={"folder", "is_deleted", "stage"})
    yield _build_bundled_file(f"{prefix}case.json", json.dumps(fields, indent=2).encode())
    for below in (EVIDENCE, KEYFRAMES):
        for name in (f"{below}/{file}" for file in folder.files(below)):
            yield prefix + name, folder.size(name) or 0, partial(folder.read, name)


def _build_bundled_file(path: str, data: bytes) -> BundledFile:
    return path, len(data), partial(io.BytesIO, data)


class _ChunkSink(io.RawIOBase):
    """Output file of a zip writer, without seeking; it buffers the written chunks until `take`."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.chunks.append(bytes(data))
        return len(data)


def _iter_zip_bytes(files: Iterable[BundledFile], digests: dict[str, str]) -> Iterator[bytes]:
    """Yield the bytes of a zip of `files`; the SHA-256 of each written file is added to `digests`."""
    sink = _ChunkSink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for path, size, open_file in files:
            digest, entry = hashlib.sha256(), zipfile.ZipInfo(path)
            entry.file_size = size
            with open_file() as source, archive.open(entry, "w") as into:
                while chunk := source.read(READ_BYTES):
                    digest.update(chunk)
                    into.write(chunk)
                    yield b"".join(sink.chunks)
                    sink.chunks.clear()
            digests[path] = digest.hexdigest()
    yield b"".join(sink.chunks)
