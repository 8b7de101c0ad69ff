"""Implementation of `unreel runs check` and `unreel runs repair`."""

from typing import Final

from unreel.cli.output import print_json, print_message, print_table
from unreel.core.settings import EnvironmentSettings, read_settings, read_storage
from unreel.curation.findings import STEPS
from unreel.engine.resolve_location import local_folder, resolve_location
from unreel.engine.table_check import TableChecker
from unreel.engine.writer_lock import LockHolder
from unreel.evaluation.run_check import TAKE_AGAIN, RunCheck, StoredRun, TableCheck, check_run
from unreel.evaluation.run_repair import SET_ASIDE, RepairResult, repair_run

_COLUMNS: Final = ("part", "looked_at", "found")


def print_check(run: str, *, as_json: bool) -> int:
    """Print whether the run is whole; the status of the command."""
    kept = _open_stored_run(run, read_settings())
    with TableChecker() as examiner:
        check = check_run(kept, examiner)
    if as_json:
        print_json({"whole": check.is_whole, **_build_check_document(check)})
    else:
        _print_run_check(check)
        _print_check_advice(check)
    return 0 if check.is_whole else 1


def print_repair(run: str, out: str | None, *, as_json: bool) -> int:
    """Repair a copy of the run and print the result; return the exit status."""
    settings = read_settings()
    old, new = (
        _open_stored_run(run, settings),
        _open_stored_run(out or f"{run.rstrip('/')}-repaired", settings),
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
        _print_repaired(done)
    return 0


def _open_stored_run(named: str, settings: EnvironmentSettings) -> StoredRun:
    place = resolve_location(named, read_storage(settings))
    return StoredRun(place=place, ledgers=local_folder(place, settings), steps=STEPS)


def _build_check_document(check: RunCheck) -> dict[str, object]:
    return {
        "run": check.run,
        "recipe": check.recipe,
        "tables": check.tables,
        "ledgers": check.ledgers,
    }


def _print_run_check(check: RunCheck) -> None:
    rows: list[dict[str, object]] = []
    if check.recipe is not None:
        asked = f"{check.recipe.reviewer} {check.recipe.instrument}".strip()
        found = check.recipe.problem or "whole"
        rows.append({"part": "recipe", "looked_at": asked, "found": found})
    for table in check.tables:
        looked_at = f"{table.n_rows:,} rows in {table.n_files:,} files, version {table.version}"
        found = "; ".join(_list_table_problems(table)) or "whole"
        rows.append({"part": table.name, "looked_at": looked_at, "found": found})
    for ledger in check.ledgers:
        torn = f"{ledger.n_torn} torn lines, which are passed over" if ledger.n_torn else "whole"
        looked_at, found = f"{ledger.n_lines:,} lines", ledger.problem or torn
        rows.append({"part": ledger.name, "looked_at": looked_at, "found": found})
    print_table(_COLUMNS, rows)


def _list_table_problems(table: TableCheck) -> list[str]:
    found = list(table.problems)
    if table.unreadable:
        files = list(table.unreadable.items())
        first, why = files[0]
        found.append(
            f"{len(files)} data files cannot be read, {table.n_unreadable_rows:,} rows in them; the "
            f"first is {first}: {why}"
        )
    found += [f"{n:,} rows: {fault}" for fault, n in table.faults.items()]
    if table.n_doubled:
        found.append(f"{table.n_doubled:,} keys have more than one row")
    if not table.is_whole and table.whole_version is not None:
        found.append(f"version {table.whole_version} is whole")
    return found


def _print_check_advice(check: RunCheck) -> None:
    for table in check.tables:
        if table.n_older_files:
            print_message(
                f"{table.name}: {table.n_older_files} files of older versions are kept for a while"
            )
        if table.n_leftover_files:
            print_message(
                f"{table.name}: {table.n_leftover_files} files were written by a run that was killed "
                "before it committed them; the next run clears them away"
            )
        if table.writer is not None:
            print_message(f"{table.name}: {_format_writer_state(table.writer)}")
    if check.is_whole:
        print_message(f"{check.run} is whole")
    elif check.is_later:
        print_message(f"{check.run} is of another release. Upgrade unreel, and check it again")
    elif check.is_curation:
        print_message(f"{check.run} is damaged. {TAKE_AGAIN}")
    else:
        print_message(
            f"{check.run} is damaged. Repair a copy of it with `unreel runs repair {check.run}`"
        )


def _format_writer_state(writer: LockHolder) -> str:
    if writer.alive:
        return f"{writer.name} writes it now, so it may change while it is looked at"
    if writer.alive is None:
        return (
            f"{writer.name} writes it, or died with its lease: the next run waits a minute for a sign "
            "of life, then takes it over"
        )
    return f"{writer.name} is dead and left its lease: the next run takes it over"


def _print_repaired(done: RepairResult) -> None:
    for name, table in done.tables.items():
        again = f", {table.found_again:,} of them found again" if table.found_again else ""
        print_message(f"{name}: {table.kept:,} rows copied{again}")
        for n, what in (
            (table.unreadable, "in files that cannot be read"),
            (table.set_aside, f"not right, set aside in {SET_ASIDE}"),
            (table.doubled, "with a key that another row has too"),
        ):
            if n:
                print_message(f"  {n:,} rows {what}")
    print_message(f"{done.run} is unchanged; the repaired run is in {done.out}")
    print_message(
        f"Request its missing answers: the same `unreel eval` as before, with --out {done.out}"
    )
