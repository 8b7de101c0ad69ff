"""What a person types to change a recipe."""

from typing import Any

import pytest

from unreel.core.errors import InvalidSettingError
from unreel.recipes.validation import apply_recipe_change


def changed(change: str, values: dict[str, Any]) -> dict[str, Any]:
    apply_recipe_change(change, values)
    return values


def test_a_value_is_read_as_toml_and_a_plain_word_needs_no_quotes() -> None:
    assert changed("a.b=[1, 2]", {}) == {"a": {"b": [1, 2]}}
    assert changed("a.b=word", {}) == {"a": {"b": "word"}}
    assert changed("seed=3", {"seed": 1}) == {"seed": 3}


def test_the_only_section_of_its_name_is_meant() -> None:
    assert changed("data.weight=2", {"data": [{"weight": 1}]}) == {"data": [{"weight": 2}]}


def test_one_of_several_sections_is_named_by_its_number() -> None:
    values = changed("data.1.weight=2", {"data": [{"weight": 1}, {"weight": 1}]})
    assert values == {"data": [{"weight": 1}, {"weight": 2}]}
    inner = changed("data.0.condition.prompt=paper", {"data": [{}]})
    assert inner == {"data": [{"condition": {"prompt": "paper"}}]}


@pytest.mark.parametrize(
    "change", ["data.weight=2", "data.2.weight=2", "data.-1.weight=2", "name.x=1", "data", "=1"]
)
def test_what_names_no_section_is_refused_with_what_to_do(change: str) -> None:
    with pytest.raises(InvalidSettingError, match=r"number|SECTION\.KEY"):
        apply_recipe_change(change, {"name": "x", "data": [{}, {}]})
