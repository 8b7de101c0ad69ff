"""`unreel runs`: what was asked, and how far each run is."""

from pathlib import Path

import click

from unreel.cli.output import json_option, print_json, print_table, say
from unreel.core.settings import read_settings
from unreel.engine.access import Access
from unreel.engine.place import Place
from unreel.evaluate.job import RECIPE_FILE, Run, open_run


def open_folder(folder: Path) -> Run:
    """The run that `unreel eval` keeps in `folder`."""
    access = Access(settings=read_settings())
    return open_run(Place(str(folder)), access, ledgers=folder)


@click.command()
@click.argument(
    "folder", default="runs", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@json_option
def runs(*, folder: Path, as_json: bool) -> None:
    """List the runs in FOLDER (`runs` by default) with their answers and failures."""
    found = sorted(path.parent for path in folder.glob(f"**/{RECIPE_FILE}"))
    rows = [_row(path) for path in found]
    if as_json:
        print_json(rows)
    elif rows:
        print_table(tuple(rows[0]), rows)
    else:
        say(f"no run in {folder}. Start one with `unreel eval --out {folder}/NAME`")


def _row(path: Path) -> dict[str, object]:
    run = open_folder(path)
    failures = run.answers.failures()
    return {
        "run": str(path),
        "reviewer": run.reviewer_name(),
        "instrument": str(run.scope.instrument),
        "benchmark": run.recipe.benchmark,
        "answered": run.answers.count("failure_reason IS NULL"),
        "failed": sum(failures.values()),
    }
