"""The page about entries shows entries that can be read, and states the limits that are held."""

import re
import tomllib
from pathlib import Path

from unreel.arena.fairness.similar_reviewers import ALARM_BELOW, LEAST_SHARED
from unreel.arena.season.recipe import SeasonHoldoutSection
from unreel.arena.submission.clip_inspection import COPY_BITS, NEAR_BITS
from unreel.arena.submission.creator_checks import (
    FASTEST,
    FEWEST_FRAMES,
    LONGEST_S,
    SHORTEST_S,
    SLOWEST,
    SMALLEST_SIDE,
)
from unreel.arena.submission.entry import SeasonEntryRecipe
from unreel.recipes.validation import validate_recipe_sections

PAGE = (Path(__file__).parents[2] / "docs" / "arena-entries.md").read_text(encoding="utf-8")
ENTRY, HOLDOUT = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_the_entry_of_the_page_can_be_handed_in() -> None:
    recipe = validate_recipe_sections(SeasonEntryRecipe, tomllib.loads(ENTRY))
    assert (recipe.kind, recipe.title, recipe.declared) == ("creator", "Blue 2", True)


def test_the_hold_out_of_the_page_is_one() -> None:
    found = validate_recipe_sections(SeasonHoldoutSection, tomllib.loads(HOLDOUT)["holdout"])
    assert (found.share, found.canaries) == (0.2, 10)


def test_the_page_states_the_limits_that_are_held() -> None:
    told = (
        f"under {float(SHORTEST_S):g} s or over {LONGEST_S} s",
        f"under {FEWEST_FRAMES} frames",
        f"outside {SLOWEST} to {FASTEST} frames a second",
        f"a side under {SMALLEST_SIDE} pixels",
        f"within {COPY_BITS} of 256 bits",
        f"within {NEAR_BITS} bits",
        f"at least {100 * LEAST_SHARED:g} % of their errors",
        f"excluded at {ALARM_BELOW:g} among",
    )
    flat = " ".join(PAGE.split())
    assert [each for each in told if each not in flat] == []
