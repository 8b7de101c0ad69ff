"""The settings of `[screen]`."""

from typing import Any

from pydantic import Field

from unreel.recipes.section import MOST_PARTS, RecipeSection, Text


class ScreenSection(RecipeSection):
    """`[screen]`: removes segments that cannot be judged; human decisions take precedence."""

    screens: dict[str, dict[str, Any]] = Field(default={"motion": {}}, max_length=MOST_PARTS)
    """By name, each with its settings below `[screen.screens.NAME]`."""
    decisions: Text | None = None
    """JSONL of people's decisions, lines of `queue.jsonl`; relative to the recipe's file."""
