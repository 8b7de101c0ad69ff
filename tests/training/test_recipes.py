"""The recipes that come with the package: readable, with the papers' own numbers, and closed."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

from unreel.benchmarks.published.printed_tables import read_published_table
from unreel.core.errors import InvalidSettingError, UnknownNameError, UnreelError
from unreel.training.recipe import TrainRecipe, list_shipped_recipes, read_train_recipe

SHIPPED = list_shipped_recipes()
FOLDER = files("unreel.training") / "recipes"


def published(name: str) -> TrainRecipe:
    recipe = read_train_recipe(name)
    assert recipe.published is not None
    return recipe


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_recipe_is_read_and_named_as_its_file(name: str) -> None:
    recipe = read_train_recipe(name)
    assert recipe.name == name
    assert recipe.data[0].benchmark is None  # the data is the user's
    with pytest.raises(InvalidSettingError, match="--data PATH"):
        _ = recipe.data[0].path
    assert read_train_recipe(name, data=["here"]).data[0].path == Path("here")
    assert recipe.holdout.benchmarks[0].split == "test"


@pytest.mark.parametrize("name", SHIPPED)
def test_every_choice_of_a_shipped_recipe_names_where_it_comes_from(name: str) -> None:
    text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    decided = re.search(r"\[optimise\](.*?)\n\[", text, re.DOTALL)
    assert decided is not None
    for line in decided[1].strip().splitlines():
        assert re.search(r"# .*(paper|ours)", line), line


@pytest.mark.parametrize("name", [name for name in SHIPPED if read_train_recipe(name).published])
def test_published_numbers_are_those_of_the_paper(name: str) -> None:
    told = published(name).published
    assert told is not None
    table = read_published_table(told.source.rpartition(": ")[2])
    column = "configuration" if "configuration" in table.rows[0] else "model"
    (row,) = [row for row in table.rows if row[column] == told.row]
    for figure, value in told.figures.items():
        assert float(row[figure]) == value


def test_deep_trace_s_hyper_parameters_are_the_paper_s() -> None:
    llama, qwen = published("dtr-videollama3-7b"), published("dtr-qwen2.5-vl-7b")
    assert [r.data[0].resolved_condition.sampling for r in (llama, qwen)] == [
        "fps-2-max-180",
        "fps-1-max-20",
    ]
    assert [r.optimise.batch_size for r in (llama, qwen)] == [1, 2]
    assert {r.optimise.learning_rate for r in (llama, qwen)} == {1e-5}
    assert {r.optimise.epochs for r in (llama, qwen)} == {1}


def test_video_real_bench_s_hyper_parameters_are_the_paper_s() -> None:
    recipe = published("vrb-qwen2.5-vl-7b")
    model, optimise = recipe.model, recipe.optimise
    assert (model.tune, model.lora_rank, model.lora_alpha, model.lora_dropout) == (
        "lora",
        8,
        16,
        0.05,
    )
    assert (optimise.learning_rate, optimise.schedule, optimise.warmup) == (1e-4, "cosine", 0.1)
    assert (optimise.epochs, optimise.betas) == (10, (0.9, 0.999))
    assert recipe.data[0].resolved_condition.sampling == "fps-8"
    assert recipe.data[0].resolved_condition.max_pixels == 50176
    prompts = {
        name: published(f"vrb-qwen2.5-vl-7b{name}").data[0].resolved_condition.prompt
        for name in ABLATED
    }
    assert prompts == ABLATED


ABLATED = {
    "": "paper",
    "-no-structure": "no-structure",
    "-score-only": "score-only",
    "-verbal": "paper-verbal",
}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("optimise.learning_rat=1", "learning_rate"),
        ("model.lora=8", "lora_rank"),
        ("data.condition.prompts=paper", "prompt"),
        ("holdout.benchmarks=[{path='x'}]", "benchmark"),
        ("reward.lable=1", "label"),
        ("devices.cout=1", "count"),
    ],
)
def test_a_key_that_does_not_exist_is_refused_with_the_nearest(change: str, problem: str) -> None:
    with pytest.raises(InvalidSettingError, match=f"no such setting.*{problem}"):
        read_train_recipe("dtr-qwen2.5-vl-7b", changes=[change])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("data.condition.prompt=paper", "prompt that can be taught.*fine-tuning"),
        ("data.condition.audio=on", "accepts sound"),
        ("data.condition.thinking=on", "as it was trained"),
        ("data.condition.sampling=uniform-0", "cannot take 0 frames"),
        ("data.weight=0", "greater than 0"),
        ("optimise.learning_rate=nan", "finite"),
        ("holdout.share=2", "less than or equal to 1"),
        ("holdout.benchmarks=[{}]", "neither a benchmark nor a split"),
        ("data.protocol=tracing", "trace"),
        ("model.family=llava", "qwen2.5-vl"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_a_clip_is_opened(change: str, words: str) -> None:
    with pytest.raises(UnreelError, match=words):
        read_train_recipe("dtr-qwen2.5-vl-7b", changes=[change])


def test_a_recipe_that_is_neither_shipped_nor_a_file_is_told_by_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'dtr-qwen3-vl-8b'"):
        read_train_recipe("dtr-qwen3-vl-7b")
    with pytest.raises(UnreelError, match="No such file"):
        read_train_recipe("nowhere.toml")
