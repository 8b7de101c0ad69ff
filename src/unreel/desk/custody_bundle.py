"""Custody bundles: zip files with the evidence of cases and a manifest of hashes, and their check.

A bundle is written as a stream, without compression and without times, so that the same files give
the same bytes: `verify_custody_bundle` writes it again and finds any byte that differs.
"""

import errno
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Literal

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from unreel.core.chunks import READ_BYTES
from unreel.core.errors import InvalidValueError, UnreadableSourceError, UnreelError
from unreel.core.input_files import parse_json_object
from unreel.core.output_files import OutputDirectory, open_regular_user_file
from unreel.core.safe_names import make_safe_file_name
from unreel.core.safe_text import sanitise_line
from unreel.desk.case_store import LOG, CaseRecord, parse_case_log, replay_case_log
from unreel.desk.keyframes import KEYFRAMES
from unreel.desk.review_case import EVIDENCE
from unreel.desk.signature import NAMESPACE, NO_TIMESTAMP, check_signature, check_timestamp
from unreel.report.review.browser_pdf import PDF
from unreel.report.review.evidence_page import RESULT

MANIFEST = "manifest.json"
SIGNATURE = f"{MANIFEST}.sig"
TIMESTAMP = f"{MANIFEST}.tsr"
_PLAIN_PATH = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*")
"""Pattern of the paths in bundles, so that no program unpacks a file outside its folder."""
_MAX_BYTES = 64 << 20
"""Maximum size of a file that the check reads at once, such as the manifest, in bytes."""
_CASE = "case.json"
_NOT_LISTED = frozenset({MANIFEST, SIGNATURE, TIMESTAMP})
_READ_WHOLE = _NOT_LISTED | {LOG, _CASE, RESULT}
_NOT_IN_CASE_FILE = {"folder", "is_deleted", "stage", "damage", "files"}
_NEW_FIELDS = frozenset({"head", "n_not_chained"})
"""Fields that `case.json` lacks in bundles of older cases."""
UNSIGNED = "Unsigned: proves nothing about who made it."
_GUIDE = f"""\
{MANIFEST} lists the SHA-256 of every file of this bundle, and of the original clip.
Check all of it:      unreel desk verify BUNDLE.zip
Check the signature:  ssh-keygen -Y check-novalidate -n {NAMESPACE} -s {SIGNATURE} < {MANIFEST}
Check the time:       openssl ts -verify -data {MANIFEST} -in {TIMESTAMP} -CAfile AUTHORITIES.pem
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
    n_not_chained: int = 0
    """Number of lines at the beginning of the log that do not carry the hash of the line before."""


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


_MANIFESTS = TypeAdapter(BundleManifest)


@dataclass(frozen=True, slots=True, kw_only=True)
class CustodyBundleCheck:
    """Result of the check of a custody bundle: problems, number of files, originals and signature."""

    bundle: str
    is_intact: bool
    problems: tuple[str, ...]
    is_signed: bool = False
    """Whether the bundle has a signature; an invalid one is a problem."""
    n_files: int = 0
    originals: tuple[BundledCase, ...] = ()
    signature: str = "The signature was not checked."
    timestamp: str = NO_TIMESTAMP


def iter_custody_bundle_bytes(
    cases: Sequence[CaseRecord],
    sign: Callable[[bytes], bytes] | None,
    stamp: Callable[[bytes], bytes | None] | None = None,
) -> Iterator[bytes]:
    """Yield the bundle's bytes, a folder per case if several; `sign` and `stamp` attest the manifest in it.

    Raises:
        InvalidValueError: A file was changed while it was read; the bundle has no manifest then.
    """
    digests: dict[str, str] = {}

    def iter_files() -> Iterator[BundledFile]:
        yield _build_bundled_file("VERIFY.txt", _GUIDE.encode())
        for case, prefix in zip(cases, _list_prefixes([case.name for case in cases]), strict=True):
            yield from _iter_case_files(case, prefix)
            if problems := _compare_with_review(case, prefix, digests):
                raise InvalidValueError(problems[0])
        manifest = BundleManifest(
            made_by=f"unreel {version('unreel')}",
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            cases=tuple(
                BundledCase(id=c.id, name=c.name, sha256=c.clip, n_not_chained=c.n_not_chained)
                for c in cases
            ),
            files=digests,
        )
        data = _MANIFESTS.dump_json(manifest, indent=2)
        yield _build_bundled_file(MANIFEST, data)
        if sign is not None:
            yield _build_bundled_file(SIGNATURE, sign(data))
        if stamp is not None and (timestamp := stamp(data)) is not None:
            yield _build_bundled_file(TIMESTAMP, timestamp)

    yield from _iter_zip_bytes(iter_files(), digests)


def verify_custody_bundle(
    path: Path,
    signers: Path | None = None,
    *,
    original: Path | None = None,
    authorities: Path | None = None,
) -> CustodyBundleCheck:
    """Check every byte of the custody bundle at `path`, and its signature and timestamp if it has them.

    The manifest, the log, the case file and the result of each case must agree, and `original`, if
    given, must be the original of a case.

    Raises:
        UnreadableSourceError: A file cannot be read.
    """
    try:
        digest = None
        if original is not None:
            with open_regular_user_file(original) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        checked = _check_bundle_entries(path, signers, authorities)
        if digest not in {None, *(each.sha256 for each in checked.originals)}:
            problem = f"{original}, with SHA-256 {digest}, is not an original of this bundle."
            checked = replace(checked, is_intact=False, problems=(*checked.problems, problem))
    except (zipfile.BadZipFile, ValueError, LookupError, RuntimeError, EOFError, OSError) as error:
        # A damaged directory leads to offsets before the file: an invalid argument, and no file's name.
        if isinstance(error, OSError) and (error.errno != errno.EINVAL or error.filename):
            raise UnreadableSourceError(
                str(error.filename or path),
                error.strerror or "unreadable",
                "Check the path and that you may read it",
            ) from error
        reason = "the manifest is malformed" if isinstance(error, ValidationError) else str(error)
        problem = f"It is not an intact bundle: {sanitise_line(reason)}."
        return CustodyBundleCheck(bundle=str(path), is_intact=False, problems=(problem,))
    return checked


def _check_bundle_entries(
    path: Path, signers: Path | None, authorities: Path | None
) -> CustodyBundleCheck:
    digests: dict[str, str] = {}
    with open_regular_user_file(path) as file, zipfile.ZipFile(file) as archive:
        _require_plain_entries(archive, file.seek(0, io.SEEK_END))
        data = archive.read(MANIFEST)
        signature, timestamp = (
            archive.read(name) if name in archive.namelist() else None
            for name in (SIGNATURE, TIMESTAMP)
        )
        entries = archive.infolist()
        files = ((e.filename, e.file_size, partial(archive.open, e)) for e in entries)
        rewritten = hashlib.sha256()
        for chunk in _iter_zip_bytes(files, digests):
            rewritten.update(chunk)
        file.seek(0)
        is_same = rewritten.digest() == hashlib.file_digest(file, "sha256").digest()
        manifest = _MANIFESTS.validate_json(data)
        prefixes = _list_prefixes([case.name for case in manifest.cases])
        contradictions = [
            problem
            for case, prefix in zip(manifest.cases, prefixes, strict=True)
            for problem in _compare_case_files(archive, case, prefix, digests)
        ]
    listed = manifest.files
    present = {name: value for name, value in digests.items() if name not in _NOT_LISTED}
    problems = [f"{sanitise_line(name)} is missing." for name in listed.keys() - present.keys()]
    for name in [name for name, value in present.items() if listed.get(name) != value]:
        problem = "was changed" if name in listed else "is not in the manifest"
        problems.append(f"{sanitise_line(name)} {problem}.")
    if not problems and not is_same:
        problems.append("Bytes outside of the listed files were changed.")
    problems = problems or contradictions
    texts = [UNSIGNED, NO_TIMESTAMP]
    checks = ((check_signature, signature, signers), (check_timestamp, timestamp, authorities))
    for number, (check, evidence, trusted) in enumerate(checks):
        try:
            if evidence is not None:
                texts[number] = check(data, evidence, trusted)
            elif trusted is not None:
                problems.append(texts[number])
        except InvalidValueError as error:
            texts[number] = str(error)
            problems.append(texts[number])
    return CustodyBundleCheck(
        bundle=str(path),
        is_intact=not problems,
        problems=tuple(problems),
        is_signed=signature is not None,
        n_files=len(listed),
        originals=manifest.cases,
        signature=texts[0],
        timestamp=texts[1],
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
        problem = "files in the archive overlap"
    elif any(e.file_size > _MAX_BYTES for e in entries if e.filename.split("/")[-1] in _READ_WHOLE):
        problem = f"the manifest or another of its texts is larger than {_MAX_BYTES} bytes"
    if problem:
        raise InvalidValueError(problem)


def _iter_case_files(case: CaseRecord, prefix: str) -> Iterator[BundledFile]:
    folder = OutputDirectory(case.folder)
    with folder.read(LOG) as log:
        data = log.read()
    yield _build_bundled_file(prefix + LOG, data)
    fields = _build_case_json(replay_case_log(parse_case_log(data), case.folder))
    yield _build_bundled_file(prefix + _CASE, json.dumps(fields, indent=2).encode())
    for below in (EVIDENCE, KEYFRAMES):
        for name in (f"{below}/{file}" for file in folder.files(below)):
            yield prefix + name, folder.size(name) or 0, partial(folder.read, name)


def _build_case_json(case: CaseRecord) -> dict[str, Any]:
    """Return the content of `case.json`: the state that results from the log."""
    fields: dict[str, Any] = to_jsonable_python(case, exclude=_NOT_IN_CASE_FILE)
    return fields


def _list_prefixes(names: Sequence[str]) -> list[str]:
    """Return the folder of each case in a bundle by the names of the originals; none for a single case."""
    stems = [make_safe_file_name(Path(name).stem) for name in names]
    return [f"{n:03d}-{stem}/" for n, stem in enumerate(stems, start=1)] if len(stems) > 1 else [""]


def _compare_with_review(case: CaseRecord, prefix: str, digests: dict[str, str]) -> list[str]:
    """Return how the files of a case in a bundle differ from those that its review wrote."""
    folders = (f"{EVIDENCE}/", f"{KEYFRAMES}/")
    written = {prefix + name: sha for name, sha in case.files.items() if name.startswith(folders)}
    places = tuple(prefix + folder for folder in folders)
    printed = f"{prefix}{EVIDENCE}/{PDF}"
    present = {name for name in digests if name.startswith(places) and name != printed}
    problem = "was changed after the review, or does not belong to it"
    changed = [name for name in written.keys() | present if digests.get(name) != written.get(name)]
    return [f"{sanitise_line(name)} {problem}." for name in sorted(changed) if case.files]


def _compare_case_files(
    archive: zipfile.ZipFile, case: BundledCase, prefix: str, digests: dict[str, str]
) -> list[str]:
    """Return how the manifest, the log, the case file and the result of one case disagree."""
    try:
        log = parse_case_log(archive.read(prefix + LOG))
        record = replay_case_log(log, Path(case.id))
        expected = _build_case_json(record)
        fields = parse_json_object(archive.read(prefix + _CASE))
        problems = _compare_with_review(record, prefix, digests)
        different = [
            name
            for name, value in expected.items()
            if fields.get(name) != value and (name in fields or name not in _NEW_FIELDS)
        ]
        if different:
            problems.append(f"{prefix}{_CASE} differs from the log in {', '.join(different)}.")
        if (record.name, record.clip) != (case.name, case.sha256):
            problems.append(f"{prefix}{LOG} is about another original than the manifest.")
        result = f"{prefix}{EVIDENCE}/{RESULT}"
        if result in digests:
            values = parse_json_object(archive.read(result))
            if values.get("clip") != case.sha256:
                problems.append(f"{result} is about another original than the manifest.")
            if record.stage == "done" and values.get("attention") != record.attention:
                problems.append(f"{result} differs from the log in attention.")
    except (UnreelError, ValueError, LookupError, TypeError) as error:
        return [f"{prefix}{LOG}, {_CASE} or {RESULT} is missing or malformed ({error})."]
    return problems


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
