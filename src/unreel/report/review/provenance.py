"""Result of one check of a file, and the origin that its C2PA manifest states, read in a sandboxed process.

A manifest is a signed claim and does not prove what the picture shows. A missing manifest
proves nothing.
"""

from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from unreel.core.errors import SandboxError
from unreel.core.failure import Failure
from unreel.media.messages import TaskPayload
from unreel.media.sandbox import FileSandbox, SandboxLimits
from unreel.media.sandbox.wire import sanitise_reply_text

MARKS: Final = "Visible marks"


class FileCheckOutcome(StrEnum):
    """Outcome of a file check: found something, found nothing, or was not made."""

    SOMETHING = "something"
    NOTHING = "nothing"
    NOT_LOOKED = "not-looked"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCheck:
    """One check of a clip file, such as for watermarks, with its finding as text."""

    name: str
    found: FileCheckOutcome
    says: str
    """Sentences about the finding, without exaggeration."""
    claim: str = ""
    """The same in one sentence where the file itself says that it was generated; else empty."""


def build_skipped_watermark_check(reason: str) -> FileCheck:
    """Return the watermark check that was not made; `reason` ends its sentence."""
    return FileCheck(name=MARKS, found=FileCheckOutcome.NOT_LOOKED, says=f"Not searched: {reason}")


_TASKS: Final = "unreel.report.review.provenance_task:TASKS"
_LIMITS: Final = SandboxLimits(seconds=10, reply_bytes=1 << 20)
_MARKS: Final = (
    (4, b"ftyp", "video/mp4"),
    (8, b"AVI ", "video/x-msvideo"),
    (0, b"GIF8", "image/gif"),
)
_START_BYTES: Final = 12
_UNTRUSTED: Final = "signingCredential.untrusted"
_TRAINED: Final = ("(trainedAlgorithmicMedia)", "(compositeWithTrainedAlgorithmicMedia)")
"""IPTC terms for media made by a trained model, completely or partly, in an action."""

Text = Annotated[str, Field(max_length=300), AfterValidator(sanitise_reply_text)]
"""Text of the signer, sanitised: one line without control characters."""


class ManifestState(StrEnum):
    """Trust state of a file's manifest."""

    NOT_LOOKED_FOR = "not-looked-for"
    ABSENT = "absent"
    UNREADABLE = "unreadable"
    INVALID = "invalid"
    VALID = "valid"
    TRUSTED = "trusted"


class C2paManifest(BaseModel):
    """Active manifest of a file, as stated by its signer; only signature and hashes are checked."""

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


class ProvenanceResult(BaseModel):
    """Result of reading a C2PA manifest, with a sentence that explains it."""

    model_config = ConfigDict(frozen=True)

    state: ManifestState
    says: str
    manifest: C2paManifest | None = None


def read_c2pa_manifest(file: Path, *, without_seccomp: bool = False) -> ProvenanceResult:
    """Read the manifest of `file`; a manifest that cannot be read gives a state, never an exception."""
    if find_spec("c2pa") is None:
        return _build_skipped_result("c2pa-python is not installed (pip install 'unreel[review]')")
    form = _detect_file_type(file)
    if form is None:
        return _build_skipped_result("the library does not read this kind of file")
    try:
        with FileSandbox(_LIMITS, tasks=_TASKS, without_seccomp=without_seccomp) as sandbox:
            reply = sandbox("manifest", file, {"format": form})
    except SandboxError as error:
        return _build_skipped_result(error.problem)
    return (
        _build_unreadable_result(str(reply))
        if isinstance(reply, Failure)
        else _parse_manifest_reply(reply)
    )


def build_credentials_check(found: ProvenanceResult) -> FileCheck:
    """Return `found` as a file check."""
    looked = {
        ManifestState.NOT_LOOKED_FOR: FileCheckOutcome.NOT_LOOKED,
        ManifestState.UNREADABLE: FileCheckOutcome.NOT_LOOKED,
        ManifestState.ABSENT: FileCheckOutcome.NOTHING,
    }
    return FileCheck(
        name="Content Credentials",
        found=looked.get(found.state, FileCheckOutcome.SOMETHING),
        says=found.says,
        claim=_format_generation_claim(found),
    )


def _format_generation_claim(found: ProvenanceResult) -> str:
    manifest = found.manifest
    actions = manifest.actions if manifest else ()
    if manifest is None or not any(word in action for action in actions for word in _TRAINED):
        return ""
    held = "" if found.state is not ManifestState.INVALID else ", but they do not hold"
    signer = manifest.signer or "an unnamed signer"
    return f"Its Content Credentials, signed as {signer}, say that a trained model made it{held}."


def _detect_file_type(file: Path) -> str | None:
    """Detect the file type from its first bytes: the library needs it."""
    try:
        with file.open("rb") as opened:
            start = opened.read(_START_BYTES)
    except OSError:
        return None
    return next((form for place, mark, form in _MARKS if start[place:].startswith(mark)), None)


def _parse_manifest_reply(reply: TaskPayload) -> ProvenanceResult:
    try:
        manifest = C2paManifest.model_validate(reply.header)
    except ValidationError:
        manifest = None
    if manifest is None or reply.blobs:
        return _build_unreadable_result("the process that read it sent back what it must not")
    return _evaluate_manifest(manifest)


def _evaluate_manifest(manifest: C2paManifest) -> ProvenanceResult:
    if manifest.found == "absent":
        says = (
            "The file carries no Content Credentials (C2PA). That proves nothing: most files carry "
            "none, and they are lost by most ways of sending a file."
        )
        return ProvenanceResult(state=ManifestState.ABSENT, says=says)
    if manifest.found == "broken":
        return _build_unreadable_result("; ".join(manifest.problems))
    state = {"Trusted": ManifestState.TRUSTED, "Valid": ManifestState.VALID}.get(
        manifest.state, ManifestState.INVALID
    )
    return ProvenanceResult(
        state=state, says=_format_manifest_finding(state, manifest), manifest=manifest
    )


def _format_manifest_finding(state: ManifestState, manifest: C2paManifest) -> str:
    signer = manifest.signer or "an unnamed signer"
    if state is ManifestState.INVALID:
        causes = ", ".join(code for code in manifest.problems if code != _UNTRUSTED)
        return (
            f"The file carries Content Credentials (C2PA) that name {signer} and do not hold"
            f"{f' ({causes})' if causes else ''}: the file was changed after it was signed, or they "
            "belong to another one."
        )
    held = f"The file carries Content Credentials (C2PA) signed as {signer}; signature and hashes hold."
    if state is ManifestState.TRUSTED:
        return f"{held} The signer is on the trust list in use."
    return f"{held} No trust list is in use here, so anybody could have signed under this name."


def _build_skipped_result(reason: str) -> ProvenanceResult:
    says = f"Content Credentials (C2PA) were not looked for: {reason}. That proves nothing."
    return ProvenanceResult(state=ManifestState.NOT_LOOKED_FOR, says=says)


def _build_unreadable_result(reason: str) -> ProvenanceResult:
    says = (
        f"Content Credentials (C2PA) could not be read: {reason.rstrip('.')}. That proves nothing."
    )
    return ProvenanceResult(state=ManifestState.UNREADABLE, says=says)
