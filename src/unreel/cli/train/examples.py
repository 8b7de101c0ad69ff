"""`unreel train examples` and `recipes`: inspect the model input and the recipes before training."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.output import echo, json_option, print_json, print_message, print_table
from unreel.cli.train import training_clip_options, training_recipe_options
from unreel.core.registry import LazyImport


@click.command()
@training_recipe_options
@click.option(
    "--n",
    "most",
    type=click.IntRange(1, 500),
    default=12,
    show_default=True,
    help="Number of examples on the page, balanced over data sets, splits and labels.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Output folder for the page.  [default: examples-NAME]",
)
@training_clip_options
def examples(*, as_json: bool, **options: Any) -> None:
    """Write a page with examples of RECIPE: input frames, boxes, prompt and answer.

    Frames are resized by the model's own processor if its folder is present, otherwise by the rule of the
    model family; the page states which. No weights are read.
    """
    result = LazyImport(
        "unreel.cli.train.examples_job:write_training_examples_page", "eval"
    ).load()(**options)
    if as_json:
        print_json(result)
        return
    for reason, n in result.left_out.items():
        print_message(f"excluded: {n} {reason}")
    for reason, n in result.not_compared.items():
        print_message(f"not compared by their frames: {n} {reason}")
    print_message(f"{result.n_train} training examples, {result.n_held_out} held out")
    print_message(f"{len(result.examples)} are shown; sizes and tokens by {result.view}")
    echo(result.page)


@click.command()
@json_option
def recipes(*, as_json: bool) -> None:
    """List the recipes of unreel, with the published results that they reproduce."""
    from unreel.training.recipe import list_shipped_recipes, read_train_recipe

    read = [read_train_recipe(name) for name in list_shipped_recipes()]
    figures = {r.name: r.published.figures if r.published else {} for r in read}
    rows = [
        {
            "recipe": recipe.name,
            "model": recipe.model.name,
            "tune": recipe.model.tune,
            "asks": ", ".join(f"{d.protocol} {d.condition.prompt}" for d in recipe.data),
        }
        for recipe in read
    ]
    if as_json:
        print_json([row | {"published": figures[row["recipe"]]} for row in rows])
        return
    texts = {name: ", ".join(f"{k} {v:g}" for k, v in f.items()) for name, f in figures.items()}
    print_table(
        (*rows[0], "published"), [row | {"published": texts[row["recipe"]] or "-"} for row in rows]
    )
