"""One reader for every recipe: what is wrong is said in one wording, with what to write instead."""

import pytest

from unreel.core.errors import InvalidSettingError
from unreel.curation.recipe import parse_curation_recipe as check_curation
from unreel.evaluation.recipe import validate_eval_recipe as check_run

RUN = {"benchmark": "clips", "protocol": "reality", "model": "coin"}
CURATION = {"name": "films", "source": {"path": "films"}}


def refusal(check, values) -> str:
    with pytest.raises(InvalidSettingError) as caught:
        check(values)
    return str(caught.value)


@pytest.mark.parametrize(("check", "sound"), [(check_run, RUN), (check_curation, CURATION)])
def test_an_unknown_key_is_told_with_the_nearest_one(check, sound) -> None:
    said = refusal(check, sound | {"sed": 1})
    assert said.startswith("sed: no such setting. Did you mean 'seed'? Known: ")


def test_a_key_of_a_section_is_looked_for_in_that_section() -> None:
    said = refusal(check_run, RUN | {"condition": [{}, {"promt": "paper"}]})
    assert said == (
        "condition.1.promt: no such setting. Did you mean 'prompt'? "
        "Known: sampling, audio, watermark, thinking, prompt, max_pixels, marks"
    )


def test_a_misspelt_key_is_told_before_the_one_that_it_leaves_out() -> None:
    values = {"benchmark": "clips", "protocol": "reality", "modle": "coin"}
    assert "Did you mean 'model'?" in refusal(check_run, values)


def test_a_key_that_is_not_given_is_told_as_it_is_typed() -> None:
    said = refusal(check_run, {"benchmark": "clips", "protocol": "reality"})
    assert (
        said
        == "reviewer.model: not given. Write reviewer.model = ... in the recipe, or type --model"
    )
    assert refusal(check_run, {"protocol": "reality", "model": "coin"}).endswith("BENCHMARK")
    assert refusal(check_curation, {"name": "films"}).endswith("or type --set source=VALUE")


@pytest.mark.parametrize(("check", "sound"), [(check_run, RUN), (check_curation, CURATION)])
def test_an_impossible_value_is_told_with_its_place(check, sound) -> None:
    said = refusal(check, sound | {"seed": -1})
    assert said == "seed: input should be greater than or equal to 0. Give a value that it takes"


@pytest.mark.parametrize("values", [None, [], "text"])
def test_what_is_no_recipe_at_all_is_refused(values) -> None:
    assert "holds no sections" in refusal(check_run, values)
