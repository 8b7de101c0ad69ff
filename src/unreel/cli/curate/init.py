"""`unreel curate init`, `check` and `settings`: write, check and document a recipe."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from unreel.cli.options import allow_outside_option
from unreel.cli.output import echo, json_option, print_json, print_message, print_table
from unreel.core.registry import LazyImport

if TYPE_CHECKING:
    from unreel.curation.forecast import CurationForecast

_EXTRA: Final = "curate"
_RECIPE: Final = "curate.toml"
_SAMPLE: Final = "sample"


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help=f"Recipe file to write. An existing file is never replaced.  [default: {_RECIPE}]",
)
@click.option(
    "--sample", is_flag=True, help="Create a few synthetic clips and their recipe in FOLDER."
)
@click.option("--seed", type=click.IntRange(0, 10**6), hidden=True, expose_value=False)
@json_option
def init(*, folder: Path | None, out: Path | None, sample: bool, as_json: bool) -> None:
    """Write a commented recipe for the clips in FOLDER.

    FOLDER is a folder of videos, a benchmark or a table of clips; by default the current folder. The recipe
    lists every setting with its default. With --sample, FOLDER (default `sample`) gets a few synthetic clips,
    to try a curation offline.
    """
    if sample:
        _write_sample_recipe(folder or Path(_SAMPLE), out=out, as_json=as_json)
        return
    recipe = out or Path(_RECIPE)
    guess = LazyImport("unreel.curation.recipe_template:write_folder_recipe", _EXTRA)(
        folder or Path(), recipe=recipe
    )
    if as_json:
        print_json({"recipe": str(recipe), **asdict(guess)})
        return
    for question in guess.open_questions:
        print_message(f"to decide: {question}")
    _print_next_commands(recipe)
    echo(recipe)


def _write_sample_recipe(folder: Path, *, out: Path | None, as_json: bool) -> None:
    if out is not None:
        problem = "--out goes without --sample: the recipe of a sample is in its folder."
        raise click.UsageError(problem)
    recipe, n_clips = LazyImport("unreel.curation.recipe_template:write_sample_curation", _EXTRA)(
        folder
    )
    if as_json:
        print_json({"recipe": str(recipe), "clips": n_clips})
        return
    print_message(f"wrote {n_clips} clips to {folder}; three of them are meant to be excluded")
    _print_next_commands(recipe)
    echo(recipe)


def _print_next_commands(recipe: Path) -> None:
    print_message(f"next: unreel curate check {recipe}, then unreel curate run {recipe}")


@click.command()
@click.argument("recipe", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="SECTION.KEY=VALUE",
    help="Value that replaces a setting of the recipe, for example normalise.width=640. Repeatable.",
)
@allow_outside_option
@json_option
def check(*, recipe: Path, changes: tuple[str, ...], outside: bool, as_json: bool) -> None:
    """Print the clips, labels, licences, steps and splits of RECIPE.

    Opens no clip, contacts no model or store, and writes nothing. Exits with status 2 if the recipe cannot run.
    """
    checked = LazyImport("unreel.cli.curate.curate_job:forecast_curation_recipe_file", _EXTRA)(
        recipe, changes, outside=outside
    )
    if as_json:
        print_json({**asdict(checked), "can_run": not checked.problems})
    else:
        _print_recipe_forecast(checked, recipe)
    sys.exit(2 if checked.problems else 0)


def _print_recipe_forecast(checked: "CurationForecast", recipe: Path) -> None:
    print_table(
        ("source", "real", "generated", "left_out"),
        [
            {
                "source": count.path,
                "real": count.labels.get("real", "?"),
                "generated": count.labels.get("generated", "?"),
                "left_out": ", ".join(f"{n} {why}" for why, n in count.left_out.items()) or "-",
            }
            for count in checked.sources
        ],
    )
    print_table(
        ("step", "clips", "what_is_known"),
        [
            {"step": step.step, "clips": f"up to {step.clips}", "what_is_known": step.note}
            for step in checked.steps
        ],
    )
    for split, size in checked.splits.items():
        echo(f"{split}: {size}, if nothing more is excluded")
    for count in checked.sources:
        print_message(*(f"left out: {example}" for example in count.examples))
        print_message(*([f"{count.path}: {count.remark}"] if count.remark else []))
    for problem in checked.problems:
        print_message(f"could not run: {problem}")
    if not checked.problems:
        print_message(f"next: unreel curate run {recipe}")


@click.command()
@click.argument("section", required=False)
@json_option
def settings(*, section: str | None, as_json: bool) -> None:
    """List the settings of a recipe with type, unit and default.

    With SECTION, only the settings of that section are listed.
    """
    sections = LazyImport("unreel.curation.recipe_template:find_recipe_sections", _EXTRA)(section)
    if as_json:
        print_json(sections)
        return
    for part in sections:
        heading = f"[[{part.name}]]" if part.many else f"[{part.name}]"
        echo(f"{heading if part.name else 'above all sections'}: {part.about}")
        rows = [
            {
                "key": key.key,
                "type": key.kind,
                "unit": key.unit,
                "default": "needed" if key.default is None else key.default or "none",
                "meaning": key.meaning,
            }
            for key in part.keys
        ]
        if rows:
            print_table(tuple(rows[0]), rows)
