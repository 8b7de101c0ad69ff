"""`unreel export RUN`: the questions and answers of a run, as rows."""

from pathlib import Path

from unreel.cli.output import print_json, say
from unreel.core.settings import read_settings
from unreel.evaluate.export import RunFormat, write_run
from unreel.evaluate.finding import open_named_run
from unreel.protocols.protocol import Mode


def write_rows(named: str, out: Path, *, form: RunFormat, mode: Mode, as_json: bool) -> None:
    """Write the run in the folder or prefix `named` to the file `out`, and tell how much."""
    run = open_named_run(named, read_settings())
    n_rows = write_run(run, out, form=form, mode=mode)
    if as_json:
        print_json({"file": str(out), "n_rows": n_rows})
    else:
        say(f"{n_rows} questions in {out}")
