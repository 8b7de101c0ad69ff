"""`unreel export RUN`: the questions and answers of a run, as rows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unreel.cli.evaluation.named_run import open_told
from unreel.cli.output import print_json, print_message
from unreel.core.settings import read_settings
from unreel.evaluation.export import RunFormat, write_run
from unreel.protocols.protocol import Mode


def write_rows(
    named: str, out: Path, options: Mapping[str, Any], *, form: RunFormat, mode: Mode, as_json: bool
) -> None:
    """Write the run in the folder or prefix `named` to the file `out`, and print the count.

    `given` contains the options for its benchmark: see `unreel.cli.options`.
    """
    run = open_told(named, read_settings(), **options)
    n_rows = write_run(run, out, form=form, mode=mode)
    if as_json:
        print_json({"file": str(out), "n_rows": n_rows})
    else:
        print_message(f"{n_rows} questions in {out}")
