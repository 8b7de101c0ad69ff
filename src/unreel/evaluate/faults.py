"""What can be wrong with a stored row although every byte of it can be read."""

import re
from typing import Final

from unreel.core.question import Instrument, question_key
from unreel.engine.stage import Row, has_failed

WRONG_KEY: Final = "a key that does not follow from its question"
WRONG_CLIP: Final = "a clip id that is no hash"
_HASH: Final = re.compile(r"[0-9a-f]{64}")


def answer_fault(row: Row) -> str | None:
    """What is wrong with a stored answer: its key must follow from its own fields."""
    shown = [clip for clip in (row["clip"], row["second"]) if clip is not None]
    if not shown or not all(map(_HASH.fullmatch, shown)):
        return WRONG_CLIP
    asked = (row["reviewer"], row["protocol"], row["protocol_version"], row["condition"])
    if None in asked:
        return WRONG_KEY
    instrument = Instrument(row["protocol"], row["protocol_version"])
    key = question_key(shown, row["reviewer"], instrument, row["condition"])
    return None if key == row["key"] else WRONG_KEY


def clip_fault(row: Row) -> str | None:
    """What is wrong with a surveyed file: its key is the mark of a file that may be gone by now."""
    if _HASH.fullmatch(row["key"]) is None:
        return WRONG_KEY
    return None if has_failed(row) or _HASH.fullmatch(row["clip"] or "") else WRONG_CLIP


def finding_fault(row: Row) -> str | None:
    """What is wrong with a finding of a curation; what it was asked with is not in its row."""
    if _HASH.fullmatch(row["key"]) is None:
        return WRONG_KEY
    return None if not row["clip"] or _HASH.fullmatch(row["clip"]) else WRONG_CLIP
