"""Record of a failed item: a reason to count and a detail to read."""

from dataclasses import dataclass, field
from enum import StrEnum

from unreel.core.answer import Usage


class FailureReason(StrEnum):
    """Reason why an item has no result. The values are stored in tables: add, never rename."""

    NOT_A_FILE = "not-a-file"
    NOT_NAMED = "not-named"
    TOO_LARGE = "too-large"
    CLIP_CHANGED = "clip-changed"
    FORMAT_REFUSED = "format-refused"
    CODEC_REFUSED = "codec-refused"
    TOO_MANY_PIXELS = "too-many-pixels"
    TOO_LONG = "too-long"
    NO_VIDEO = "no-video"
    UNDECODABLE = "undecodable"
    OUT_OF_TIME = "out-of-time"
    OUT_OF_MEMORY = "out-of-memory"
    WORKER_DIED = "worker-died"
    RATE_LIMITED = "rate-limited"
    SERVER_ERROR = "server-error"
    CONNECTION_LOST = "connection-lost"
    REQUEST_REJECTED = "request-rejected"
    KEY_REJECTED = "key-rejected"
    MALFORMED_REPLY = "malformed-reply"
    REPLY_TOO_LARGE = "reply-too-large"
    EMPTY_REPLY = "empty-reply"
    REFUSED = "refused"
    BUDGET_SPENT = "budget-spent"
    QUARANTINED = "quarantined"
    STAGE_FAILED = "stage-failed"
    NOT_RECORDED = "not-recorded"
    NO_BRIEF = "no-brief"
    UNFIT = "unfit"
    STOPPED = "stopped"
    UNSTATED = "unstated"

    @property
    def remedy(self) -> str:
        """Return advice for the user, as a sentence."""
        return _REMEDIES[self]


@dataclass(frozen=True, slots=True)
class Failure:
    """Record of an item without a result, with the reason; it is counted and never scored."""

    reason: FailureReason
    detail: str
    usage: Usage | None = field(default=None, compare=False, repr=False)
    """Tokens that were charged although no result was returned."""

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.detail}. {self.reason.remedy}"


def parse_stored_failure(reason: object, detail: object) -> Failure:
    """Return the failure of a stored row; an unknown reason becomes part of the detail."""
    text = detail if isinstance(detail, str) else ""
    try:
        return Failure(FailureReason(str(reason)), text)
    except ValueError:
        return Failure(FailureReason.UNSTATED, f"{str(reason)[:60]!a}: {text}")


def build_damaged_row_failure(what: str) -> Failure:
    """Build the failure for a stored row that is neither an answer nor a failure; it counts as failed."""
    return Failure(FailureReason.UNSTATED, f"the stored row is damaged: {what}")


_REMEDIES = {
    FailureReason.NOT_A_FILE: "Name a regular file that you may read.",
    FailureReason.NOT_NAMED: "Name its store or host in UNREEL_FETCH_FROM if you trust it; "
    "link-local and metadata addresses stay refused.",
    FailureReason.TOO_LARGE: "Cut it into shorter clips, or raise UNREEL_FETCH_MB for fetched files.",
    FailureReason.CLIP_CHANGED: "Run again when no process writes there: the new file is queried.",
    FailureReason.FORMAT_REFUSED: "Convert it to mp4, mkv, webm, avi, mpegts or gif.",
    FailureReason.CODEC_REFUSED: "Re-encode it to H.264, HEVC, VP9 or AV1.",
    FailureReason.TOO_MANY_PIXELS: "Scale it down.",
    FailureReason.TOO_LONG: "Cut it into shorter clips.",
    FailureReason.NO_VIDEO: "Check that the file contains a video stream with frames.",
    FailureReason.UNDECODABLE: "Check the file for damage, or re-encode it.",
    FailureReason.OUT_OF_TIME: "Shorten the clip or raise the time limit.",
    FailureReason.OUT_OF_MEMORY: "Scale the clip down or raise the memory limit.",
    FailureReason.WORKER_DIED: "Treat the file as hostile; report it if it is not.",
    FailureReason.RATE_LIMITED: "Lower --max-connections, or ask again later with --retry-failed.",
    FailureReason.SERVER_ERROR: "Look at the server's log, then ask again with --retry-failed.",
    FailureReason.CONNECTION_LOST: "Check the address and that the server runs.",
    FailureReason.REQUEST_REJECTED: "Read the server's message: model name, rights or request size.",
    FailureReason.KEY_REJECTED: "Put the right key into the variable of that server.",
    FailureReason.MALFORMED_REPLY: "Check which server answers there: a model's server must use the OpenAI protocol.",
    FailureReason.REPLY_TOO_LARGE: "Lower the token limit, or check what answers there.",
    FailureReason.EMPTY_REPLY: "Raise the token limit: thinking may have used all of it.",
    FailureReason.REFUSED: "The model refused to answer; it counts as unanswered.",
    FailureReason.BUDGET_SPENT: "Raise the budget and run again: answered questions are kept.",
    FailureReason.QUARANTINED: "The clip ended its worker each time; look at it by hand.",
    FailureReason.STAGE_FAILED: "Report it with its detail: a step of the job has a bug.",
    FailureReason.NOT_RECORDED: "Add the clip's answer to the recorded ones, or ask a live reviewer.",
    FailureReason.NO_BRIEF: "Add the missing input to the scene, or omit that setting.",
    FailureReason.UNFIT: "Leave this scene out, or request something that it is suitable for.",
    FailureReason.STOPPED: "Run the same command again.",
    FailureReason.UNSTATED: "Look at the tool that wrote the failure down.",
}
