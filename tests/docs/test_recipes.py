"""The page of recipes names every key, and nothing else."""

import re
from pathlib import Path

import pytest

from unreel.core.input_files import read_toml_file
from unreel.evaluation.recipe import EvalRecipe, validate_eval_recipe
from unreel.recipes.validation import RecipeSection
from unreel.reviewers.condition_section import ConditionSection
from unreel.reviewers.config import ReviewerSection

PAGE = (Path(__file__).parents[2] / "docs/reference/recipes.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("title", "section"),
    [
        ("## unreel eval", EvalRecipe),
        ("## `[reviewer]`", ReviewerSection),
        ("## `[[condition]]`", ConditionSection),
    ],
)
def test_every_key_of_a_section_has_its_row(title: str, section: type[RecipeSection]) -> None:
    part = PAGE.partition(title)[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE) == list(section.model_fields)


def test_the_example_is_a_recipe(tmp_path: Path) -> None:
    found = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    file = tmp_path / "recipe.toml"
    file.write_text(found[1], encoding="utf-8")
    recipe = validate_eval_recipe(read_toml_file(file, "recipe"))
    assert recipe.reviewer.deadline_s == 60
    assert len(recipe.conditions) == 2
