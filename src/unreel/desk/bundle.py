"""Custody bundles: a zip of the evidence with a manifest of hashes, and the check of such a zip.

A bundle is written as a stream, without compression and without times, so that the same files give
the same bytes: `verify_bundle` writes it again and finds any byte that differs.
"""

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.names import plain_name, relative_name
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_line
from unreel.core.small_documents import parse_object
from unreel.desk.case_state import CaseRecord
from unreel.desk.cases import LOG
from unreel.desk.keyframes import KEYFRAMES
from unreel.desk.review_case import EVIDENCE
from unreel.desk.signature import NAMESPACE, check_signature

MANIFEST: Final = "manifest.json"
SIGNATURE: Final = f"{MANIFEST}.sig"
CASE: Final = "case.json"
_GUIDE: Final = "VERIFY.txt"
_FORM: Final = "unreel-custody-bundle"
_CHUNK: Final = 1 << 20
_LARGEST_MANIFEST: Final = 64 << 20
_FOLDERS: Final = (EVIDENCE, KEYFRAMES)
_HOW: Final = f"""\
{MANIFEST} lists the SHA-256 of every file of this bundle, and of the original clip.
Check all of it:      unreel desk verify BUNDLE.zip
Check the signature:  ssh-keygen -Y check-novalidate -n {NAMESPACE} -s {SIGNATURE} < {MANIFEST}
Check the signer:     ssh-keygen -Y verify -n {NAMESPACE} -s {SIGNATURE} -f ALLOWED_SIGNERS -I PERSON < {MANIFEST}
The verdicts are opinions of AI models and of people, not forensic proof.
"""


@dataclass(frozen=True, slots=True)
class BundleFile:
    """One file of a bundle: its path, its size, and a reader of its bytes."""

    path: str
    size: int
    read: Callable[[], Iterable[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleCheck:
    """Result of the check of a bundle."""

    bundle: str
    is_intact: bool
    n_files: int
    originals: tuple[dict[str, str], ...]
    """Name and SHA-256 of each original."""
    signature: str
    problems: tuple[str, ...]


def write_bundle(
    cases: Sequence[CaseRecord], sign: Callable[[bytes], bytes] | None
) -> Iterator[bytes]:
    """Yield the bytes of a bundle; several cases have one folder each."""
    listed: list[dict[str, Any]] = []
    files = [_make_file(_GUIDE, _HOW.encode())]
    for number, case in enumerate(cases, start=1):
        stem = plain_name(Path(case.name).stem)
        files += _list_files(case, f"{number:03d}-{stem}/" if len(cases) > 1 else "")

    def iter_all() -> Iterator[BundleFile]:
        for file in files:
            digest = hashlib.sha256()
            yield BundleFile(file.path, file.size, partial(_iter_hashed, file, digest))
            listed.append({"path": file.path, "size": file.size, "sha256": digest.hexdigest()})
        manifest = json.dumps(_make_manifest(cases, listed), indent=2).encode()
        yield _make_file(MANIFEST, manifest)
        if sign is not None:
            yield _make_file(SIGNATURE, sign(manifest))

    yield from _iter_zip(iter_all())


def verify_bundle(path: Path, signers: Path | None = None) -> BundleCheck:
    """Check every byte of the bundle at `path`, and its signature if it has one.

    Raises:
        UnreadableSourceError: The file cannot be read.
    """
    try:
        return _verify(path, signers)
    except OSError as error:
        remedy = "Check the path and that you may read it"
        raise UnreadableSourceError(str(path), error.strerror or "unreadable", remedy) from error
    except (zipfile.BadZipFile, InvalidValueError, LookupError, NotImplementedError) as error:
        return _fail(path, f"It is no intact bundle: {sanitise_line(str(error))}.")


def _verify(path: Path, signers: Path | None) -> BundleCheck:
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        manifest = _read_entry(archive, archive.getinfo(MANIFEST))
        document = parse_object(manifest)
        if document.get("form") != _FORM or len(set(names)) < len(names):
            return _fail(path, "It is no bundle of unreel, or a name is in it twice.")
        expected = {relative_name(str(row["path"])): row for row in document["files"]}
        problems = [f"{name} is missing." for name in expected if name not in names]
        more = set(names) - {*expected, MANIFEST, SIGNATURE}
        problems += [f"{sanitise_line(name)} is not in the manifest." for name in sorted(more)]
        for entry in entries:
            row = expected.get(entry.filename)
            if row is not None and _hash_entry(archive, entry) != row["sha256"]:
                problems.append(f"{sanitise_line(entry.filename)} was changed.")
        if not problems and _hash_rewritten(archive, entries) != _hash_file(path):
            problems.append("Bytes outside of the listed files were changed.")
        signature = "The bundle has no signature."
        if SIGNATURE in names:
            signed = _read_entry(archive, archive.getinfo(SIGNATURE))
            checked = check_signature(manifest, signed, signers)
            signature = checked.text
            problems += [] if checked.is_valid else [checked.text]
        elif signers is not None:
            problems.append(signature)
    return BundleCheck(
        bundle=str(path),
        is_intact=not problems,
        n_files=len(expected),
        originals=tuple(
            {"name": str(case["name"]), "sha256": str(case["sha256"])} for case in document["cases"]
        ),
        signature=signature,
        problems=tuple(problems),
    )


def _fail(path: Path, problem: str) -> BundleCheck:
    return BundleCheck(
        bundle=str(path),
        is_intact=False,
        n_files=0,
        originals=(),
        signature="The signature was not checked.",
        problems=(problem,),
    )


def _list_files(case: CaseRecord, prefix: str) -> list[BundleFile]:
    folder = OutputDirectory(case.folder)
    facts = json.dumps(format_case(case), indent=2).encode()
    log = b"".join(_iter_file(folder, LOG))
    files = [_make_file(prefix + CASE, facts), _make_file(prefix + LOG, log)]
    for name in (f"{sub}/{name}" for sub in _FOLDERS for name in folder.files(sub)):
        size = folder.size(name)
        if size is not None:
            files.append(BundleFile(prefix + name, size, partial(_iter_file, folder, name)))
    return files


def format_case(case: CaseRecord) -> dict[str, Any]:
    """Return the facts, notes and verdicts of a case as JSON."""
    return {
        "id": case.id,
        "name": case.name,
        "sha256": case.clip,
        "size_bytes": case.size_bytes,
        "added_at": case.added_at.isoformat(),
        "added_by": case.person,
        "reviewers": case.reviewers,
        "summary": [case.sentence, *case.claims],
        "entries": [asdict(entry) | {"at": entry.at.isoformat()} for entry in case.entries],
    }


def _make_manifest(cases: Sequence[CaseRecord], listed: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "form": _FORM,
        "version": 1,
        "made_by": f"unreel {version('unreel')}",
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cases": [
            {"id": case.id, "name": case.name, "sha256": case.clip, "size_bytes": case.size_bytes}
            for case in cases
        ],
        "files": listed,
    }


def _make_file(path: str, data: bytes) -> BundleFile:
    return BundleFile(path, len(data), lambda: [data])


def _iter_file(folder: OutputDirectory, name: str) -> Iterator[bytes]:
    with folder.read(name) as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _iter_hashed(file: BundleFile, digest: Any) -> Iterator[bytes]:
    for chunk in file.read():
        digest.update(chunk)
        yield chunk


class _ChunkSink:
    """Output of a zip that cannot seek; its chunks are taken away as they come."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._chunks.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: chunks are in memory."""

    def take(self) -> Iterator[bytes]:
        """Yield the chunks, and forget them."""
        chunks, self._chunks = self._chunks, []
        yield from chunks


def _iter_zip(files: Iterable[BundleFile]) -> Iterator[bytes]:
    sink = _ChunkSink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        for file in files:
            entry = zipfile.ZipInfo(file.path)
            entry.file_size = file.size
            with archive.open(entry, "w") as into:
                for chunk in file.read():
                    into.write(chunk)
                    yield from sink.take()
    yield from sink.take()


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    if entry.file_size > _LARGEST_MANIFEST:
        msg = f"{entry.filename} is larger than {_LARGEST_MANIFEST} bytes"
        raise InvalidValueError(msg)
    return archive.read(entry)


def _iter_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    if entry.compress_type != zipfile.ZIP_STORED:
        msg = f"{entry.filename} is compressed, which unreel never writes"
        raise InvalidValueError(msg)
    with archive.open(entry) as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _hash_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> str:
    try:
        return _hash_chunks(_iter_entry(archive, entry))
    except zipfile.BadZipFile:  # its own checksum differs
        return ""


def _hash_rewritten(archive: zipfile.ZipFile, entries: Sequence[zipfile.ZipInfo]) -> str:
    files = (
        BundleFile(each.filename, each.file_size, partial(_iter_entry, archive, each))
        for each in entries
    )
    return _hash_chunks(_iter_zip(files))


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hash_chunks(chunks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()
