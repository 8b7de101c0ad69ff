"""Open the runs that a command names, and print messages about them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from unreel.cli.output import print_message
from unreel.core.settings import EnvironmentSettings
from unreel.evaluation.run_job import EvalRun
from unreel.evaluation.run_lookup import name_runs, open_named_run


def open_all_told(
    names: Iterable[str], settings: EnvironmentSettings, **options: Any
) -> list[EvalRun]:
    """Open the runs at `names`, and all runs in directories of runs; see `open_told`."""
    return [open_told(name, settings, **options) for name in name_runs(names, settings)]


def open_told(
    name: str,
    settings: EnvironmentSettings,
    *,
    moved_to: Path | None,
    outside: bool,
    accept_changed: bool,
) -> EvalRun:
    """Open the run at the directory or prefix `name`; print a message if its benchmark is not verifiable."""
    run = open_named_run(
        name, settings, moved_to=moved_to, outside=outside, accept_changed=accept_changed
    )
    if run.kept is None or run.kept.identity is None:
        print_message(
            f"{name}: which benchmark it asked about is not known, it is taken for "
            f"{run.benchmark_path}. The next `unreel eval` of the run notes its fingerprint"
        )
    return run
