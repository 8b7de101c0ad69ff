"""Resize rules of other trainers: the coordinate space of their boxes."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from unreel.core.errors import InvalidValueError
from unreel.core.small_documents import RECIPE_BYTES, parse_object, read_bytes
from unreel.reviewers.endpoint.families import ResizeRule
from unreel.reviewers.local.input_format import FamilyName
from unreel.training.example_cost import SIGHT

_PUBLISHED: Final = (4, 16384)
"""Tokens of a picture or frame, at least and at most, in the published processors."""
_FILES: Final = {
    "image": ("preprocessor_config.json", "processor_config.json"),
    "video": (
        "video_preprocessor_config.json",
        "preprocessor_config.json",
        "processor_config.json",
    ),
}


def side_of(family: FamilyName) -> int:
    """Return the side of a picture token in pixels."""
    rule = SIGHT[family, "frames"]
    return rule.patch * rule.merge


def processor_rule(family: FamilyName, folder: Path | None, half: str) -> ResizeRule:
    """Return the resize limits of a model's processor for `image` or `video`.

    The limits come from the model's directory, or else from the published processors.
    """
    side = side_of(family)
    least, most = (tokens * side**2 for tokens in _PUBLISHED)
    for name in _FILES[half] if folder else ():
        found = _find_pixel_bounds(folder / name, half) if folder else None
        if found is not None:
            least, most = found
            break
    return ResizeRule(multiple=side, min_pixels=least, max_pixels=most)


def area_bound(width: int, height: int, *, least: int, most: int) -> tuple[int, int]:
    """Return the size after LLaMA-Factory's resize, which precedes the processor.

    This resize depends on the area only and rounds down to whole pixels.
    """
    for limit, is_wrong in ((most, width * height > most), (least, width * height < least)):
        if is_wrong:
            scale = math.sqrt(limit / (width * height))
            width, height = int(width * scale), int(height * scale)
    smallest = 28
    if min(width, height) < smallest:
        width, height = max(width, smallest), max(height, smallest)
    return width, height


def _find_pixel_bounds(file: Path, half: str) -> tuple[int, int] | None:
    if not file.is_file():
        return None
    try:
        found: Mapping[str, Any] = parse_object(read_bytes(file, most=RECIPE_BYTES))
    except InvalidValueError:
        return None
    inner = found.get(f"{half}_processor")
    found = inner if isinstance(inner, Mapping) else found
    size = found.get("size")
    size = size if isinstance(size, Mapping) else {}
    pair = (
        size.get("shortest_edge", found.get("min_pixels")),
        size.get("longest_edge", found.get("max_pixels")),
    )
    least, most = (value if isinstance(value, int) else 0 for value in pair)
    return (least, most) if 0 < least <= most else None
