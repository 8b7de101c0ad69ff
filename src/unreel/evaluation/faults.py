"""Faults of a stored row whose bytes are readable."""

from typing import Final

from unreel.core.answer import digest_text
from unreel.core.question import Instrument, question_key
from unreel.engine.examine import WRONG_CLIP, WRONG_KEY, is_hash
from unreel.engine.stage import Row, has_failed
from unreel.evaluation.rulings import read_row

WRONG_TEXT: Final = "a text that is not the reply that was received"
WRONG_RULING: Final = "neither a score nor a reason why there is none"


def answer_fault(row: Row) -> str | None:
    """Return the fault of a stored answer, or None: its key must match its fields."""
    shown = [clip for clip in (row["clip"], row["second"]) if clip is not None]
    if not shown or not all(map(is_hash, shown)):
        return WRONG_CLIP
    asked = (row["reviewer"], row["protocol"], row["protocol_version"], row["condition"])
    if None in asked:
        return WRONG_KEY
    instrument = Instrument(row["protocol"], row["protocol_version"])
    key = question_key(shown, row["reviewer"], instrument, row["condition"])
    if key != row["key"]:
        return WRONG_KEY
    text, digest = row["text"], row.get("reply_digest")
    return WRONG_TEXT if text is not None and digest not in (None, digest_text(text)) else None


def clip_fault(row: Row) -> str | None:
    """Return the fault of a stored file record, or None: its key is the mark of a file that may be gone."""
    if not is_hash(row["key"]):
        return WRONG_KEY
    return None if has_failed(row) or is_hash(row["clip"] or "") else WRONG_CLIP


def ruling_fault(row: Row) -> str | None:
    """Return the fault of a stored ruling, or None: its key is a hash of texts that are not stored."""
    if not is_hash(row["key"]):
        return WRONG_KEY
    return None if has_failed(row) or read_row(row).is_settled else WRONG_RULING
