"""Commands of `unreel train`: their options; the implementations are imported when they run."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.options import media_option
from unreel.cli.output import echo, json_option, print_json, print_message, print_table
from unreel.cli.train import training_clip_options, training_recipe_options
from unreel.core.registry import LazyImport

_TRAINERS = ("chat", "llamafactory")


@click.command()
@training_recipe_options
@click.option(
    "--to",
    "trainer",
    required=True,
    type=click.Choice(_TRAINERS),
    help="Format of the export. chat: JSON Lines of messages with images, for any trainer; llamafactory: a folder that LLaMA-Factory trains on.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="New folder for the exported data and media files.",
)
@media_option("link", "copy", name="keeping")
@training_clip_options
def export(*, as_json: bool, **options: Any) -> None:
    """Export the training data of RECIPE for another trainer, with its settings.

    Boxes use the coordinate space of the trainer's resize. Differences from unreel are printed and stored
    in unreel-export.json.

    Exits with status 1 if rows could not be written.
    """
    LazyImport("unreel.cli.train.examples_job:export_training_data", extra="eval").load()(
        options, as_json=as_json
    )


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


@click.command()
@training_recipe_options
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the model and the checkpoints.  [default: trainings/NAME]",
)
@click.option(
    "--resume",
    "going",
    flag_value="resume",
    help="Resume an interrupted training. The command fails if there is none.",
)
@click.option(
    "--fresh",
    "going",
    flag_value="fresh",
    help="Delete the existing checkpoints, and start the training again.",
)
@training_clip_options
def run(*, as_json: bool, **options: Any) -> None:
    """Train the model of RECIPE, and write it to OUT/model.

    Prints the number of examples and tokens before it starts, and after ten steps the measured rate and the
    remaining time. A second call resumes, also after kill -9. Ctrl-C saves a checkpoint after the current step.
    """
    LazyImport("unreel.cli.train.run_job:train_from_recipe", "train").load()(
        options, as_json=as_json
    )


@click.command()
@click.argument("checkpoint", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def card(*, checkpoint: Path, as_json: bool) -> None:
    """Print the card of CHECKPOINT: data, recipe, licences, scores and limits."""
    from unreel.training.model_card import format_model_card, read_model_card

    model_card = read_model_card(checkpoint)
    if as_json:
        print_json(model_card)
    else:
        echo(*format_model_card(model_card).rstrip("\n").split("\n"))
