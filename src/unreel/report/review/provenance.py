"""Origin that a file's C2PA manifest states, read in a sandboxed process; type of a file check.

A manifest is a signed claim and does not prove what the picture shows. A missing manifest
proves nothing.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from unreel.core.errors import InvalidSettingError, SandboxError
from unreel.core.failure import Failure
from unreel.core.input_files import read_limited_bytes
from unreel.media.messages import TaskReplyPayload
from unreel.media.sandbox import FileSandbox, SandboxLimits
from unreel.media.sandbox.reply_format import sanitise_reply_text

VISIBLE_WATERMARKS = "Visible marks"


class FileOriginCheckOutcome(StrEnum):
    """Outcome of one check of a clip file: found something, found nothing, or was not made."""

    SOMETHING = "something"
    NOTHING = "nothing"
    NOT_SEARCHED = "not-looked"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOriginCheck:
    """Result of one check of a clip file, such as for watermarks, as text."""

    name: str
    found: FileOriginCheckOutcome
    says: str
    """Description of the finding, in sentences."""
    claim: str = ""
    """Sentence about a mark or data in the file that calls it generated; otherwise empty."""
    hint: str = ""
    """Sentence, also in `says`, about a text that only names a generator; otherwise empty."""


def build_skipped_watermark_check(reason: str) -> FileOriginCheck:
    """Return the result of a watermark check that was not made; `reason` ends its sentence."""
    return FileOriginCheck(
        name=VISIBLE_WATERMARKS,
        found=FileOriginCheckOutcome.NOT_SEARCHED,
        says=f"Not searched: {reason}",
    )


_TASKS = "unreel.report.review.provenance_task:TASKS"
_LIMITS = SandboxLimits(seconds=10, reply_bytes=1 << 20)
_SIGNATURES = (
    (4, b"ftyp", "video/mp4"),
    (8, b"AVI ", "video/x-msvideo"),
    (0, b"GIF8", "image/gif"),
)
_START_BYTES = 12
_MAX_TRUST_BYTES = 2_000_000
_UNTRUSTED = "signingCredential.untrusted"
_TRAINED = ("(trainedAlgorithmicMedia)", "(compositeWithTrainedAlgorithmicMedia)")
"""IPTC terms for media made by a trained model, completely or partly, in an action."""

Text = Annotated[str, Field(max_length=300), AfterValidator(sanitise_reply_text)]
"""Text of the signer, sanitised: one line without control characters."""


class C2paManifestState(StrEnum):
    """State of a file's C2PA manifest, from absent to trusted."""

    NOT_SEARCHED = "not-looked-for"
    ABSENT = "absent"
    UNREADABLE = "unreadable"
    INVALID = "invalid"
    VALID = "valid"
    TRUSTED = "trusted"


class C2paManifest(BaseModel):
    """Active C2PA manifest of a file, as its signer states it; only signature and hashes are checked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    found: Literal["absent", "broken", "manifest"]
    state: Text = ""
    title: Text = ""
    generator: Text = ""
    signer: Text = ""
    issuer: Text = ""
    signed_at: Text = ""
    actions: Annotated[tuple[Text, ...], Field(max_length=20)] = ()
    problems: Annotated[tuple[Text, ...], Field(max_length=20)] = ()


class C2paReadResult(BaseModel):
    """Result of reading a file's C2PA manifest, with a sentence that explains it."""

    model_config = ConfigDict(frozen=True)

    state: C2paManifestState
    says: str
    manifest: C2paManifest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class C2paTrustList:
    """Certificates of authorities whose signers are trusted, as a PEM file on this machine."""

    name: str
    certificates: str
    changed_on: date

    def __str__(self) -> str:
        return f"{self.name} of {self.changed_on.isoformat()}"


def read_trust_list(file: Path) -> C2paTrustList:
    """Read a trust list; raise `InvalidSettingError` if the file has no certificate in PEM."""
    data = read_limited_bytes(file, most=_MAX_TRUST_BYTES)
    text = data.decode("ascii", "replace")
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise InvalidSettingError(
            "--trust-anchors", f"{file} has no certificate in PEM", "Name a file of certificates"
        )
    changed_on = datetime.fromtimestamp(file.stat().st_mtime, UTC).date()
    return C2paTrustList(name=file.name, certificates=text, changed_on=changed_on)


def read_c2pa_manifest(
    file: Path, *, without_seccomp: bool = False, trust_list: C2paTrustList | None = None
) -> C2paReadResult:
    """Read the C2PA manifest of `file`; an unreadable manifest gives a state, never an exception."""
    if find_spec("c2pa") is None:
        return _build_skipped_result("c2pa-python is not installed (pip install 'unreel[review]')")
    try:
        with file.open("rb") as opened:
            start = opened.read(_START_BYTES)
    except OSError:
        start = b""
    types = (kind for at, mark, kind in _SIGNATURES if start[at:].startswith(mark))
    if (media_type := next(types, None)) is None:
        return _build_skipped_result("the library does not read this kind of file")
    try:
        with FileSandbox(_LIMITS, tasks=_TASKS, without_seccomp=without_seccomp) as sandbox:
            request: dict[str, object] = {"format": media_type}
            if trust_list is not None:
                request["trust_anchors"] = trust_list.certificates
            reply = sandbox("manifest", file, request)
    except SandboxError as error:
        return _build_skipped_result(error.problem)
    return (
        _build_unreadable_result(str(reply))
        if isinstance(reply, Failure)
        else _evaluate_c2pa_reply(reply, trust_list)
    )


def build_credentials_check(result: C2paReadResult) -> FileOriginCheck:
    """Convert the result of reading a C2PA manifest to a file check."""
    outcomes = {
        C2paManifestState.NOT_SEARCHED: FileOriginCheckOutcome.NOT_SEARCHED,
        C2paManifestState.UNREADABLE: FileOriginCheckOutcome.NOT_SEARCHED,
        C2paManifestState.ABSENT: FileOriginCheckOutcome.NOTHING,
    }
    manifest = result.manifest
    actions = manifest.actions if manifest else ()
    claim = ""
    if manifest is not None and any(word in action for action in actions for word in _TRAINED):
        suffix = ", but they are not valid" if result.state is C2paManifestState.INVALID else ""
        signer = manifest.signer or "an unnamed signer"
        claim = f"Its Content Credentials, signed as {signer}, say that a trained model made it{suffix}."
    return FileOriginCheck(
        name="Content Credentials",
        found=outcomes.get(result.state, FileOriginCheckOutcome.SOMETHING),
        says=result.says,
        claim=claim,
    )


def _evaluate_c2pa_reply(
    reply: TaskReplyPayload, trust_list: C2paTrustList | None
) -> C2paReadResult:
    try:
        manifest = C2paManifest.model_validate(reply.header)
    except ValidationError:
        manifest = None
    if manifest is None or reply.blobs:
        return _build_unreadable_result("the sandboxed reader sent an invalid reply")
    if manifest.found == "absent":
        text = (
            "The file carries no Content Credentials (C2PA). That proves nothing: most files carry "
            "none, and most ways of sending a file remove them."
        )
        return C2paReadResult(state=C2paManifestState.ABSENT, says=text)
    if manifest.found == "broken":
        return _build_unreadable_result("; ".join(manifest.problems))
    state = {"Trusted": C2paManifestState.TRUSTED, "Valid": C2paManifestState.VALID}.get(
        manifest.state, C2paManifestState.INVALID
    )
    return C2paReadResult(
        state=state, says=_format_manifest_finding(state, manifest, trust_list), manifest=manifest
    )


def _format_manifest_finding(
    state: C2paManifestState, manifest: C2paManifest, trust_list: C2paTrustList | None
) -> str:
    signer = manifest.signer or "an unnamed signer"
    if state is C2paManifestState.INVALID:
        causes = ", ".join(code for code in manifest.problems if code != _UNTRUSTED)
        return (
            f"The file carries Content Credentials (C2PA) that name {signer} and are not valid"
            f"{f' ({causes})' if causes else ''}: the file was changed after it was signed, or they "
            "belong to another file."
        )
    finding = f"The file carries Content Credentials (C2PA) signed as {signer}; signature and hashes are valid."
    if state is C2paManifestState.TRUSTED:
        return f"{finding} The signer is on the trust list {trust_list}."
    if trust_list is not None:
        return f"{finding} The signer is not on the trust list {trust_list}: anyone could have signed under this name."
    return f"{finding} No trust list is in use here, so anyone could have signed under this name."


def _build_skipped_result(reason: str) -> C2paReadResult:
    text = f"Content Credentials (C2PA) were not checked: {reason}. That proves nothing."
    return C2paReadResult(state=C2paManifestState.NOT_SEARCHED, says=text)


def _build_unreadable_result(reason: str) -> C2paReadResult:
    text = (
        f"Content Credentials (C2PA) could not be read: {reason.rstrip('.')}. That proves nothing."
    )
    return C2paReadResult(state=C2paManifestState.UNREADABLE, says=text)
