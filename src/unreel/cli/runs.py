"""`unreel runs`: what was asked, and how far each run is."""

from pathlib import Path
from typing import Final

import click

from unreel.cli.output import json_option, print_json, print_table, say
from unreel.core.errors import UnreadableSourceError
from unreel.core.registry import Lazy
from unreel.core.settings import Settings, read_settings

_WHERE: Final = "unreel.evaluate.whereabouts"


@click.command()
@click.argument("folder", default="runs")
@json_option
def runs(*, folder: str, as_json: bool) -> None:
    """List the runs below FOLDER, a folder or s3://bucket/prefix (`runs` by default).

    Each line tells who answered which instrument about which benchmark, and how many answers and
    failures there are.
    """
    if "://" not in folder and not Path(folder).is_dir():
        remedy = "Name the folder that holds your runs, or start one with `unreel eval`"
        raise UnreadableSourceError(folder, "no such folder", remedy)
    find_runs = Lazy(f"{_WHERE}:find_runs", "eval").load()
    settings = read_settings()
    rows = [_row(name, settings) for name in find_runs(folder, settings)]
    if as_json:
        print_json(rows)
    elif rows:
        print_table(tuple(rows[0]), rows)
    else:
        say(f"no run in {folder}. Start one with `unreel eval --out {folder}/NAME`")


def _row(name: str, settings: Settings) -> dict[str, object]:
    run = Lazy(f"{_WHERE}:open_named_run", "eval").load()(name, settings)
    failures = run.answers.failures()
    return {
        "run": name,
        "reviewer": run.reviewer_name(),
        "instrument": str(run.scope.instrument),
        "benchmark": run.recipe.benchmark,
        "answered": run.answers.count("failure_reason IS NULL"),
        "failed": sum(failures.values()),
    }
