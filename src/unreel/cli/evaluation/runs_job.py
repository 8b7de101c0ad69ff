"""Implementation of `unreel runs check` and `repair` and of `unreel export RUN`; opens runs."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from unreel.cli.output import print_json, print_message, print_table
from unreel.core.settings import (
    EnvironmentSettings,
    read_environment_settings,
    read_storage_options,
)
from unreel.curation.step_result_table import STEPS
from unreel.engine.location import get_local_state_folder, resolve_location
from unreel.engine.table_check import TableChecker
from unreel.engine.writer_lock import LockHolder
from unreel.evaluation.export import RunFormat, export_run
from unreel.evaluation.run_check import (
    TAKE_AGAIN,
    RunCheck,
    RunTableCheck,
    StoredRunLocation,
    check_run,
)
from unreel.evaluation.run_job import EvalRun
from unreel.evaluation.run_lookup import open_named_run, resolve_run_names
from unreel.evaluation.run_repair import SET_ASIDE, RunRepairResult, repair_run
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
    if run.kept is None or run.kept.identity is None:
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


_COLUMNS: Final = ("part", "looked_at", "found")


def check_run_and_print(run: str, *, as_json: bool) -> int:
    """Check a run for damage, and print the result; return exit status 1 if it is damaged."""
    stored = _resolve_stored_run(run, read_environment_settings())
    with TableChecker() as examiner:
        check = check_run(stored, examiner)
    if as_json:
        print_json({"whole": check.is_whole, **_build_run_check_document(check)})
    else:
        _print_run_check(check)
        _print_check_advice(check)
    return 0 if check.is_whole else 1


def repair_run_copy_and_print(run: str, out: str | None, *, as_json: bool) -> int:
    """Write a repaired copy of a damaged run to `out`; print the result and return the exit status."""
    settings = read_environment_settings()
    old, new = (
        _resolve_stored_run(run, settings),
        _resolve_stored_run(out or f"{run.rstrip('/')}-repaired", settings),
    )
    with TableChecker() as examiner:
        done = repair_run(old, new, examiner)
    if isinstance(done, RunCheck):
        if as_json:
            print_json({"run": done.run, "out": None, "tables": {}})
        else:
            print_message(
                f"{done.run} is intact: there is nothing to repair, and nothing was written"
            )
        return 0
    if as_json:
        print_json({"run": done.run, "out": done.out, "tables": done.tables})
    else:
        _print_repair_result(done)
    return 0


def _resolve_stored_run(named: str, settings: EnvironmentSettings) -> StoredRunLocation:
    run = resolve_location(named, read_storage_options(settings))
    return StoredRunLocation(place=run, ledgers=get_local_state_folder(run, settings), steps=STEPS)


def _build_run_check_document(check: RunCheck) -> dict[str, object]:
    return {
        "run": check.run,
        "recipe": check.recipe,
        "tables": check.tables,
        "ledgers": check.ledgers,
    }


def _print_run_check(check: RunCheck) -> None:
    rows: list[dict[str, object]] = []
    if check.recipe is not None:
        recipe = f"{check.recipe.reviewer} {check.recipe.instrument}".strip()
        found = check.recipe.problem or "whole"
        rows.append({"part": "recipe", "looked_at": recipe, "found": found})
    for table in check.tables:
        looked_at = f"{table.n_rows:,} rows in {table.n_files:,} files, version {table.version}"
        found = "; ".join(_list_table_problems(table)) or "whole"
        rows.append({"part": table.name, "looked_at": looked_at, "found": found})
    for ledger in check.ledgers:
        torn = f"{ledger.n_torn} incomplete lines, which are skipped" if ledger.n_torn else "whole"
        looked_at, found = f"{ledger.n_lines:,} lines", ledger.problem or torn
        rows.append({"part": ledger.name, "looked_at": looked_at, "found": found})
    print_table(_COLUMNS, rows)


def _list_table_problems(table: RunTableCheck) -> list[str]:
    problems = list(table.problems)
    if table.unreadable:
        files = list(table.unreadable.items())
        first, reason = files[0]
        problems.append(
            f"{len(files)} data files cannot be read, {table.n_unreadable_rows:,} rows in them; the "
            f"first is {first}: {reason}"
        )
    problems += [f"{n:,} rows: {fault}" for fault, n in table.faults.items()]
    if table.n_doubled:
        problems.append(f"{table.n_doubled:,} keys have more than one row")
    if not table.is_whole and table.whole_version is not None:
        problems.append(f"version {table.whole_version} is whole")
    return problems


def _print_check_advice(check: RunCheck) -> None:
    for table in check.tables:
        if table.n_older_files:
            print_message(
                f"{table.name}: {table.n_older_files} files of older versions are kept for a while"
            )
        if table.n_leftover_files:
            print_message(
                f"{table.name}: {table.n_leftover_files} files were written by a run that was killed "
                "before it committed them; the next run deletes them"
            )
        if table.writer is not None:
            print_message(f"{table.name}: {_format_writer_state(table.writer)}")
    if check.is_whole:
        print_message(f"{check.run} is whole")
    elif check.is_later:
        print_message(f"{check.run} is from another release. Upgrade unreel, and check it again")
    elif check.is_curation:
        print_message(f"{check.run} is damaged. {TAKE_AGAIN}")
    else:
        print_message(
            f"{check.run} is damaged. Repair a copy of it with `unreel runs repair {check.run}`"
        )


def _format_writer_state(writer: LockHolder) -> str:
    if writer.alive:
        return f"{writer.name} is writing it, so it may change during the check"
    if writer.alive is None:
        return (
            f"{writer.name} is writing it, or ended without releasing its lease: the next run waits "
            "a minute for a heartbeat, then takes the lease over"
        )
    return f"{writer.name} has ended without releasing its lease: the next run takes it over"


def _print_repair_result(done: RunRepairResult) -> None:
    for name, table in done.tables.items():
        recovered = f", {table.found_again:,} of them recovered" if table.found_again else ""
        print_message(f"{name}: {table.kept:,} rows copied{recovered}")
        for n, what in (
            (table.unreadable, "in files that cannot be read"),
            (table.set_aside, f"invalid, moved to {SET_ASIDE}"),
            (table.doubled, "with a duplicate key"),
        ):
            if n:
                print_message(f"  {n:,} rows {what}")
    print_message(f"{done.run} is unchanged; the repaired run is in {done.out}")
    print_message(
        f"Request its missing answers: the same `unreel eval` as before, with --out {done.out}"
    )
