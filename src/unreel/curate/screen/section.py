"""The settings of `[screen]`."""

from typing import Any

from pydantic import Field

from unreel.recipes.section import MOST_PARTS, Section, Text


class ScreenSection(Section):
    """`[screen]`: what stays. `screens` names them, each with its settings."""

    screens: dict[str, dict[str, Any]] = Field(default={"motion": {}}, max_length=MOST_PARTS)
    decisions: Text | None = None
    """JSONL of people's decisions, lines of `queue.jsonl`; relative to the recipe's file."""
