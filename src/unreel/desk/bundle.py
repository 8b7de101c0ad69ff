"""Custody bundles: a zip of the evidence with a manifest of hashes, and the check of such a zip.

A bundle is written as a stream, without compression and without times, so that the same files give
the same bytes: `verify_bundle` writes it again and finds any byte that differs.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Final

from pydantic_core import to_jsonable_python

from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.input_files import parse_json_object
from unreel.core.names import make_safe_file_name
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_line
from unreel.desk.case_state import CaseRecord
from unreel.desk.cases import LOG
from unreel.desk.keyframes import KEYFRAMES
from unreel.desk.review_case import EVIDENCE
from unreel.desk.signature import NAMESPACE, SignatureCheck, check_signature

MANIFEST: Final = "manifest.json"
SIGNATURE: Final = f"{MANIFEST}.sig"
CASE: Final = "case.json"
_GUIDE: Final = "VERIFY.txt"
_FORM: Final = "unreel-custody-bundle"
_CHUNK: Final = 1 << 20
_LARGEST: Final = 64 << 20
"""Bytes of a manifest or a signature."""
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
    """One file of a bundle: its path, its size, and its bytes."""

    path: str
    size: int
    open: Callable[[], IO[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleCheck:
    """Result of the check of a bundle."""

    bundle: str
    is_intact: bool
    problems: tuple[str, ...]
    n_files: int = 0
    originals: tuple[dict[str, str], ...] = ()
    """Name and SHA-256 of each original."""
    signature: str = "The signature was not checked."


def write_bundle(
    cases: Sequence[CaseRecord], sign: Callable[[bytes], bytes] | None
) -> Iterator[bytes]:
    """Yield the bytes of a bundle; several cases have one folder each."""
    files = [_make_file(_GUIDE, _HOW.encode())]
    for number, case in enumerate(cases, start=1):
        stem = make_safe_file_name(Path(case.name).stem)
        files += _list_files(case, f"{number:03d}-{stem}/" if len(cases) > 1 else "")
    digests: dict[str, str] = {}

    def iter_all() -> Iterator[BundleFile]:
        yield from files
        manifest = json.dumps(_make_manifest(cases, digests), indent=2).encode()
        yield _make_file(MANIFEST, manifest)
        if sign is not None:
            yield _make_file(SIGNATURE, sign(manifest))

    yield from _iter_zip(iter_all(), digests)


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
        problem = f"It is no intact bundle: {sanitise_line(str(error))}."
        return BundleCheck(bundle=str(path), is_intact=False, problems=(problem,))


def _verify(path: Path, signers: Path | None) -> BundleCheck:
    digests: dict[str, str] = {}
    with zipfile.ZipFile(path) as archive:
        manifest = _read_entry(archive, MANIFEST)
        signed = _read_entry(archive, SIGNATURE) if SIGNATURE in archive.namelist() else None
        entries = archive.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            msg = "a file is compressed, which unreel never writes"
            raise InvalidValueError(msg)
        files = (BundleFile(e.filename, e.file_size, partial(archive.open, e)) for e in entries)
        rewritten = _hash_chunks(_iter_zip(files, digests))
    document = parse_json_object(manifest)
    if document.get("form") != _FORM:
        msg = "it has another form"
        raise InvalidValueError(msg)
    listed: dict[str, str] = document["files"]
    found = {name: value for name, value in digests.items() if name not in {MANIFEST, SIGNATURE}}
    problems = [f"{sanitise_line(name)} is missing." for name in listed.keys() - found.keys()]
    for name, value in found.items():
        if listed.get(name) != value:
            problem = "was changed" if name in listed else "is not in the manifest"
            problems.append(f"{sanitise_line(name)} {problem}.")
    with path.open("rb") as file:
        if not problems and rewritten != hashlib.file_digest(file, "sha256").hexdigest():
            problems.append("Bytes outside of the listed files were changed.")
    checked = SignatureCheck(is_valid=signers is None, text="The bundle has no signature.")
    if signed is not None:
        checked = check_signature(manifest, signed, signers)
    problems += [] if checked.is_valid else [checked.text]
    return BundleCheck(
        bundle=str(path),
        is_intact=not problems,
        problems=tuple(problems),
        n_files=len(listed),
        originals=tuple(
            {key: str(c[key]) for key in ("name", "sha256")} for c in document["cases"]
        ),
        signature=checked.text,
    )


def _list_files(case: CaseRecord, prefix: str) -> list[BundleFile]:
    folder = OutputDirectory(case.folder)
    with folder.read(LOG) as log:
        files = [_make_file(prefix + LOG, log.read())]
    facts = to_jsonable_python(case, exclude={"folder", "is_deleted", "asks_again", "stage"})
    files.append(_make_file(prefix + CASE, json.dumps(facts, indent=2).encode()))
    names = [f"{sub}/{name}" for sub in _FOLDERS for name in folder.files(sub)]
    sizes = ((name, folder.size(name) or 0) for name in names)
    files += [BundleFile(prefix + name, n, partial(folder.read, name)) for name, n in sizes]
    return files


def _make_manifest(cases: Sequence[CaseRecord], digests: Mapping[str, str]) -> dict[str, Any]:
    return {
        "form": _FORM,
        "version": 1,
        "made_by": f"unreel {version('unreel')}",
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cases": [{"id": case.id, "name": case.name, "sha256": case.clip} for case in cases],
        "files": dict(digests),
    }


def _make_file(path: str, data: bytes) -> BundleFile:
    return BundleFile(path, len(data), partial(io.BytesIO, data))


class _ChunkSink(io.RawIOBase):
    """Output of a zip that cannot seek; its chunks are taken away as they come."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._chunks.append(bytes(data))
        return len(data)

    def take(self) -> list[bytes]:
        """Return the chunks, and forget them."""
        chunks, self._chunks = self._chunks, []
        return chunks


def _iter_zip(files: Iterable[BundleFile], digests: dict[str, str]) -> Iterator[bytes]:
    """Yield the bytes of a zip, and add the SHA-256 of each file to `digests` after it."""
    sink = _ChunkSink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for file in files:
            digest, entry = hashlib.sha256(), zipfile.ZipInfo(file.path)
            entry.file_size = file.size
            with file.open() as source, archive.open(entry, "w") as into:
                while chunk := source.read(_CHUNK):
                    digest.update(chunk)
                    into.write(chunk)
                    yield from sink.take()
            digests[file.path] = digest.hexdigest()
    yield from sink.take()


def _read_entry(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).file_size > _LARGEST:
        msg = f"{name} is larger than {_LARGEST} bytes"
        raise InvalidValueError(msg)
    return archive.read(name)


def _hash_chunks(chunks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()
