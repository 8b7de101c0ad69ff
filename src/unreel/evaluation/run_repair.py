"""Repair of a damaged run: its intact rows are copied to a new location, the run is unchanged."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Final

from unreel.core.errors import InvalidSettingError, UnreadableSourceError, UnreelError
from unreel.core.output_files import OutputDirectory
from unreel.engine.location import StorageLocation, require_conditional_puts
from unreel.engine.salvage import SetAside, TableSalvageResult, salvage_table
from unreel.engine.stage import Row
from unreel.engine.start_log import ItemStartLog
from unreel.engine.table_check import TableChecker, TableCheckResult
from unreel.engine.writer_lock import build_writer_lock
from unreel.evaluation.run_check import (
    TAKE_AGAIN,
    RunCheck,
    StoredRunLocation,
    build_run_check,
    check_run_recipe_file,
    check_run_tables,
    find_run_tables,
    find_start_logs,
)
from unreel.evaluation.run_job import DRIVER
from unreel.evaluation.stored_recipe import RECIPE_FILE

SET_ASIDE: Final = "set-aside.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRepairResult:
    """Result of the repair of a run: its earlier check, and counts of copied and lost rows by table."""

    run: str
    out: str
    check: RunCheck
    """Check of the damaged run before the repair."""
    tables: dict[str, TableSalvageResult]
    """Numbers of copied and lost rows, by table name."""


def repair_run(
    run: StoredRunLocation, out: StoredRunLocation, examiner: TableChecker
) -> RunRepairResult | RunCheck:
    """Copy the intact part of `run` to the new location `out`; write nothing if the run is undamaged.

    Raises:
        InvalidSettingError: A later release wrote the run, or it is a curation.
        UnreadableSourceError: Another process writes the run, or `out` exists.
    """
    with ExitStack() as stack:
        if find_run_tables(run.place):
            stack.enter_context(build_writer_lock(run.place / DRIVER))
        checks = check_run_tables(run, examiner)
        check = build_run_check(run, checks)
        _require_repairable_run(check)
        if check.is_whole:
            return check
        _require_unused_location(out.place)
        require_conditional_puts(out.place)
        tables = _salvage_tables(checks, out, examiner)
        _copy_start_logs(run.ledgers, out.ledgers)
        _copy_recipe(run.place, out.place)
    return RunRepairResult(run=run.place.uri, out=out.place.uri, check=check, tables=tables)


def _require_repairable_run(check: RunCheck) -> None:
    setting = "run"
    if check.is_later:
        problem = f"{check.run} is of another release"
        raise InvalidSettingError(setting, problem, "Upgrade unreel, and check it again")
    if check.is_curation:
        problem = f"{check.run} is a curation, no run"
        remedy = TAKE_AGAIN
        raise InvalidSettingError(setting, problem, remedy)


def _salvage_tables(
    checks: Mapping[str, TableCheckResult], out: StoredRunLocation, examiner: TableChecker
) -> dict[str, TableSalvageResult]:
    with _open_invalid_rows_file(out.place) as file:
        return {
            name.removesuffix(".lance"): salvage_table(
                examination,
                out.open(name),
                examiner=examiner,
                judge=out.rule(name).judge,
                set_aside=_build_fault_writer(file, name),
            )
            for name, examination in checks.items()
        }


def _require_unused_location(location: StorageLocation) -> None:
    exists = location.path.exists() if location.is_local else bool(location.names())
    if exists:
        problem, remedy = "exists already", "Name a new place with --out, or remove it"
        raise UnreadableSourceError(location.uri, problem, remedy)


@contextmanager
def _open_invalid_rows_file(out: StorageLocation) -> Iterator[IO[bytes]]:
    """Open a temporary file for invalid rows, which is copied to `out` if it is not empty."""
    with NamedTemporaryFile(prefix="unreel-") as file:
        yield file
        if file.tell():
            file.flush()
            out.put(SET_ASIDE, Path(file.name))


def _build_fault_writer(file: IO[bytes], table: str) -> SetAside:
    def tell(row: Row, fault: str) -> None:
        document = {"table": table.removesuffix(".lance"), "fault": fault, "row": row}
        file.write(json.dumps(document, default=repr).encode() + b"\n")

    return tell


def _copy_recipe(run: StorageLocation, out: StorageLocation) -> None:
    """Copy the run's recipe unchanged if usable; otherwise the next `unreel eval` writes it."""
    recipe = check_run_recipe_file(run)
    if recipe is not None and not recipe.problem:
        out.put(RECIPE_FILE, run.read(RECIPE_FILE))


def _copy_start_logs(run: Path, out: Path) -> None:
    """Copy the start logs of the run, without cut-off lines."""
    into = OutputDirectory(out)
    for file in find_start_logs(run):
        try:
            into.copy(file, file.name)
        except (UnreelError, OSError):
            continue  # reported by the check; without the log, no row counts as crashed
        ItemStartLog(out / file.name).close()
