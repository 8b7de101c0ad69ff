"""Validation of untrusted text that becomes an id or part of a path."""

import re
from pathlib import PurePosixPath

from unreel.core.clip import ClipId
from unreel.core.errors import InvalidValueError, UnreadableSourceError

_CLIP_ID = re.compile(r"[0-9a-f]{64}")
_SUFFIX = re.compile(r"\.[a-z0-9]{1,8}")
_NAME_BYTES = 80
"""Maximum length of a name in bytes: three names with dashes fit into the 255 bytes of a file name."""
_SHOWN = 60


def read_clip_id(text: object, source: str) -> ClipId:
    """Parse the id of a clip, or of other bytes, that `source` contains.

    Raise `UnreadableSourceError` if the text is not a SHA-256 of 64 lower-case hexadecimal digits.
    """
    if isinstance(text, str) and _CLIP_ID.fullmatch(text):
        return ClipId(text)
    raise UnreadableSourceError(
        source,
        f"{_format_short_value(text)} is not the id of a clip: 64 hexadecimal digits in lower case",
        "Something else wrote this: take that row out, or make it again",
    )


def require_relative_path(name: str) -> str:
    """Return `name` unchanged if it is a relative path that stays inside its folder.

    Raise `InvalidValueError` if `name` is absolute or empty, or has a part `.`, `..` or "".
    """
    parts = name.split("/")
    if any(part in {"", ".", ".."} for part in parts) or "\0" in name:
        raise InvalidValueError(
            f"{_format_short_value(name)} does not stay inside its folder. Write a relative path without . or .."
        )
    return name


def make_safe_file_name(text: str) -> str:
    """Convert `text` to a short file name of letters, digits, `.`, `_` and `-`, never a hidden file."""
    plain = "".join(c if c.isalnum() or c in "._-" else "-" for c in text).lstrip(".")
    return plain.encode()[:_NAME_BYTES].decode(errors="ignore") or "unnamed"


def get_safe_suffix(location: str) -> str:
    """Return the suffix of a path or URL, such as `.mp4`; "" if the suffix is missing or unusual."""
    suffix = PurePosixPath(location).suffix.lower()
    return suffix if _SUFFIX.fullmatch(suffix) else ""


def _format_short_value(value: object) -> str:
    """Format `value` as short text without terminal control characters."""
    text = ascii(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
