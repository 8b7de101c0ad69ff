"""A model card says what a user must know, and nothing that a stranger slips in."""

from dataclasses import replace
from pathlib import Path

import pytest

from unreel.training.model_card import (
    LIMITS,
    CheckpointModelCard,
    format_model_card,
    read_model_licence,
)
from unreel.training.recipe import validate_train_recipe

RECIPE = validate_train_recipe(
    {
        "name": "tiny",
        "model": {"name": "base", "family": "qwen2.5-vl"},
        "data": {"benchmark": "clips", "protocol": "trace", "condition": {"prompt": "fine-tuning"}},
    }
)
ACCURACY = {"name": "accuracy", "value": {"value": 81.5, "low": 70.0, "high": 90.0, "n": 64}}
AUC = {"name": "auc", "value": {"why": "no confidence was asked for"}}
CARD = CheckpointModelCard(
    name="tiny",
    step=100,
    recipe=RECIPE.model_dump(mode="json"),
    data={
        "digest": "d" * 64,
        "n_train": 1000,
        "benchmarks": ["clips, split train, contents cccc"],
        "n_held_out": 64,
        "left_out": {"no-video": 3},
        "leaks": [],
    },
    base={"name": "Qwen2.5-VL-7B", "digest": "f" * 64, "licence": "apache-2.0"},
    licences=("", "CC0-1.0"),
    look={
        "step": 100,
        "loss": 0.25,
        "cards": [
            {
                "instrument": {"protocol": "trace", "version": 1},
                "n_answered": 64,
                "n_questions": 64,
                "metrics": [ACCURACY, AUC],
            }
        ],
    },
    unshown={"key": ["clip", "undecodable", "damaged"]},
    versions={"unreel": "1.0"},
)


def test_the_page_holds_data_licences_scores_with_intervals_and_limits() -> None:
    page = format_model_card(CARD)
    for said in (
        "d" * 64,
        "contents cccc",
        "apache-2.0",
        "not stated for some, CC0-1.0",
        "| accuracy | 81.500 | 70.000 to 90.000 | 64 |",
        "not measured: no confidence was asked for",
        "no-video: 3 excluded",
        "1 examples could not be shown",
        *LIMITS,
    ):
        assert said in page


def test_a_strangers_licence_brings_no_markup() -> None:
    page = format_model_card(replace(CARD, licences=("<script>|`\n# pwned",)))
    assert "<script>" not in page
    assert "\n# pwned" not in page


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        ("---\nlicense: apache-2.0\ntags: [a]\n---\n# Model", "apache-2.0"),
        ("---\nlicense: 'mit'\n---\n", "mit"),
        ("# Model\nlicense: mit\n", ""),
        ("", ""),
    ],
)
def test_the_licence_of_the_base_is_what_its_page_declares(
    text: str, licence: str, tmp_path: Path
) -> None:
    (tmp_path / "README.md").write_text(text)
    assert read_model_licence(tmp_path) == licence
