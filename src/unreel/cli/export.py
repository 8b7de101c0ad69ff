"""`unreel export`: export a benchmark to another evaluation kit, or a run as rows."""

import sys

import click

from unreel.api import export as api
from unreel.cli.options import settings_options
from unreel.cli.output import json_option, print_json, print_message


@click.command()
@settings_options(api.ExportSettings)
@json_option
def export(settings: api.ExportSettings, *, as_json: bool) -> None:
    """Export SOURCE, a benchmark or a run, for another tool.

    A benchmark becomes a task of lmms-eval or VLMEvalKit with unreel's prompts and scorers; it
    needs --protocol. A run of `unreel eval`, a folder or s3://bucket/prefix, becomes one row per
    question.

    Exits with status 1 if rows of the benchmark could not be exported.
    """
    if settings.to in api.ROW_FORMATS:
        n_rows = api.export_run(settings, print_message)
        if as_json:
            print_json({"file": str(settings.out), "n_rows": n_rows})
        else:
            print_message(f"{n_rows} questions in {settings.out}")
        return
    exported = api.export_benchmark(settings)
    if as_json:
        print_json(exported)
    else:
        print_message(f"{exported.n_questions} questions for {settings.to} in {exported.folder}")
        if exported.n_rejected:
            first = exported.rejected[0]
            print_message(f"  {exported.n_rejected} rows cannot be exported, the first is {first}")
        print_message("docs/ecosystem.md explains how to run it")
    sys.exit(1 if exported.n_rejected else 0)
