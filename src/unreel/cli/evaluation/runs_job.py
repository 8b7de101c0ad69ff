"""Implementation of `unreel runs check` and `restore` and of `unreel export RUN`; opens runs."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from unreel.cli.output import print_json, print_message, print_table
from unreel.core.settings import (
    EnvironmentSettings,
    read_environment_settings,
    read_storage_options,
)
from unreel.curation.step_execution import FINDINGS
from unreel.engine.location import resolve_location
from unreel.evaluation.export import RunFormat, export_run
from unreel.evaluation.run_check import check_run, restore_run
from unreel.evaluation.run_job import EvalRun
from unreel.evaluation.run_lookup import open_named_run, resolve_run_names
from unreel.protocols.protocol import Mode


def open_runs_with_identity_warning(
    names: Iterable[str], settings: EnvironmentSettings, **options: Any
) -> list[EvalRun]:
    """Open runs, or folders of runs, with the warnings of `open_run_with_identity_warning`."""
    return [
        open_run_with_identity_warning(name, settings, **options)
        for name in resolve_run_names(names, settings)
    ]


def open_run_with_identity_warning(
    name: str,
    settings: EnvironmentSettings,
    *,
    moved_to: Path | None,
    outside: bool,
    accept_changed: bool,
) -> EvalRun:
    """Open the run at `name`; print a warning if the run does not store which benchmark it used."""
    run = open_named_run(
        name, settings, moved_to=moved_to, outside=outside, accept_changed=accept_changed
    )
    if run.stored_benchmark is None or run.stored_benchmark.identity is None:
        print_message(
            f"{name}: the recipe does not identify the benchmark; it is assumed to be "
            f"{run.benchmark_path}. The next `unreel eval` of the run stores its fingerprint"
        )
    return run


def export_run_rows(
    named: str, out: Path, options: Mapping[str, Any], *, form: RunFormat, mode: Mode, as_json: bool
) -> None:
    """Write a run's questions to `out`, with values of `run_benchmark_options`; print their number."""
    run = open_run_with_identity_warning(named, read_environment_settings(), **options)
    n_rows = export_run(run, out, form=form, mode=mode)
    if as_json:
        print_json({"file": str(out), "n_rows": n_rows})
    else:
        print_message(f"{n_rows} questions in {out}")


def check_run_and_print(run: str, *, as_json: bool) -> int:
    """Check a run for damage, and print the result; return exit status 1 if it is damaged."""
    location = resolve_location(run, read_storage_options(read_environment_settings()))
    parts = check_run(location, FINDINGS)
    is_intact = not any(part.problem for part in parts)
    if as_json:
        print_json({"run": location.uri, "intact": is_intact, "parts": parts})
        return 0 if is_intact else 1
    print_table(
        ["part", "content", "problem", "intact_version"],
        [
            {
                "part": part.name,
                "content": part.content,
                "problem": part.problem or "none",
                "intact_version": "" if part.intact_version is None else part.intact_version,
            }
            for part in parts
        ],
    )
    if is_intact:
        print_message(f"{location.uri} is intact")
    elif any(part.intact_version is not None for part in parts):
        print_message(f"Restore the intact versions: `unreel runs restore {location.uri}`")
    else:
        print_message(
            "Move damaged parts away, then run the same command as before: it writes them again"
        )
    return 0 if is_intact else 1


def restore_run_and_print(run: str, *, as_json: bool) -> None:
    """Restore the damaged tables of a run to their latest intact version, and print the versions."""
    location = resolve_location(run, read_storage_options(read_environment_settings()))
    versions = restore_run(location, FINDINGS)
    if as_json:
        print_json({"run": location.uri, "versions": versions})
    elif not versions:
        print_message(f"{location.uri} has no damaged table")
    for name, version in {} if as_json else versions.items():
        print_message(f"{name}: restored to version {version}")
