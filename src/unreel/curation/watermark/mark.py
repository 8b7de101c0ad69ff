"""Overlays found in a clip's frames."""

from dataclasses import dataclass
from enum import StrEnum

from unreel.core.box import Box


class MarkKind(StrEnum):
    """Appearance of a mark. The values are stored in tables: add, never rename."""

    TEXT = "text"
    LOGO = "logo"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkRegion:
    """Something that stays in its place while the scene behind it moves."""

    box: Box
    kind: MarkKind
    text: str | None = None
    """What it says, where a text reader could read it."""
    stability: float
    """Share of the sampled frames in which its edges were seen, over all of its pixels: 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkSearch:
    """Result of a search for overlays."""

    found: tuple[WatermarkRegion, ...] = ()
    """Fixed marks, the largest first."""
    suspected: tuple[WatermarkRegion, ...] = ()
    """Texts near the border of a still part: marks, or texts of the scene."""
    roaming: tuple[str, ...] = ()
    """Texts that were read at several places of the picture, one at a time."""
    inconclusive: str | None = None
    """Why nothing found does not mean that nothing is there; `None` where it does."""
