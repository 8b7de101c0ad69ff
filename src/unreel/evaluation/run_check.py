"""Check of a stored run: its recipe, all rows of its tables, its start logs, its current writer."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from obstore.exceptions import BaseError

from unreel.core.answer import digest_reply_text
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.question import Instrument, compute_question_key
from unreel.engine.clip_facts import CLIPS
from unreel.engine.location import StorageLocation
from unreel.engine.stage import Row, is_failed_row
from unreel.engine.start_log import SIGNS
from unreel.engine.table import LanceTable
from unreel.engine.table_check import (
    LATER,
    WRONG_CLIP,
    WRONG_KEY,
    TableChecker,
    TableCheckResult,
    TableCheckRule,
    check_stored_table,
    is_sha256_hex,
)
from unreel.engine.writer_lock import LockHolder, find_lock_holder
from unreel.evaluation.judge_rulings import parse_ruling_row
from unreel.evaluation.stored_recipe import StoredRecipe, UnusableRecipe, find_run_recipe
from unreel.evaluation.table_schemas import ANSWERS, RULINGS

WRONG_TEXT: Final = "a text that is not the reply that was received"
WRONG_RULING: Final = "neither a score nor a reason why there is none"


def find_answer_fault(row: Row) -> str | None:
    """Return the fault of a stored answer, such as a key that does not match its fields, or `None`."""
    clips = [clip for clip in (row["clip"], row["second"]) if clip is not None]
    if not clips or not all(map(is_sha256_hex, clips)):
        return WRONG_CLIP
    parts = (row["reviewer"], row["protocol"], row["protocol_version"], row["condition"])
    if None in parts:
        return WRONG_KEY
    instrument = Instrument(row["protocol"], row["protocol_version"])
    key = compute_question_key(clips, row["reviewer"], instrument, row["condition"])
    if key != row["key"]:
        return WRONG_KEY
    text, digest = row["text"], row.get("reply_digest")
    return (
        WRONG_TEXT if text is not None and digest not in (None, digest_reply_text(text)) else None
    )


def find_clip_fault(row: Row) -> str | None:
    """Return the fault of a stored clip row, or `None`. The clip file itself is not read."""
    if not is_sha256_hex(row["key"]):
        return WRONG_KEY
    return None if is_failed_row(row) or is_sha256_hex(row["clip"] or "") else WRONG_CLIP


def find_ruling_fault(row: Row) -> str | None:
    """Return the fault of a stored ruling: an invalid key, or no score and no reason; else `None`."""
    if not is_sha256_hex(row["key"]):
        return WRONG_KEY
    return None if is_failed_row(row) or parse_ruling_row(row).is_settled else WRONG_RULING


TAKE_AGAIN: Final = (
    "Move its damaged tables away and start the same `unreel curate` again: it repeats those steps"
)
_STEPS: Final = "steps/"
_ANSWERS: Final = "answers.lance"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecipeCheck:
    """Result of the check of a run's recipe."""

    reviewer: str = ""
    instrument: str = ""
    problem: str = ""
    """Reason why the recipe cannot be used; empty if it can be used."""
    is_later: bool = False
    """Whether another release wrote the recipe, so that the problem is no damage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTableCheck:
    """Result of the check of one table of a run."""

    name: str
    version: int | None
    n_rows: int
    n_files: int
    problems: tuple[str, ...]
    """Errors of the table as a whole."""
    unreadable: Mapping[str, str]
    """Error of each data file that cannot be read, by path."""
    n_unreadable_rows: int
    faults: Mapping[str, int]
    """Number of invalid rows, by error."""
    n_doubled: int
    whole_version: int | None
    """Latest undamaged version, if the present one is damaged; otherwise `None`."""
    n_older_files: int
    """Number of data files of older versions, which are kept for a limited time."""
    n_leftover_files: int
    """Number of data files of no version, written by a killed run that did not commit them."""
    writer: LockHolder | None

    @property
    def is_whole(self) -> bool:
        """Return whether nothing in the table is damaged."""
        return not (self.problems or self.unreadable or self.faults or self.n_doubled)

    @property
    def is_later(self) -> bool:
        """Return whether a later release wrote some rows; only that release can check them."""
        return LATER in self.faults


@dataclass(frozen=True, slots=True, kw_only=True)
class StartLogCheck:
    """Result of the check of one start log: a file that records starts and ends of rows."""

    name: str
    n_lines: int
    n_torn: int
    """Number of lines that are cut off or invalid; they are ignored."""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCheck:
    """Result of the check of a run: its recipe, tables and start logs."""

    run: str
    recipe: RunRecipeCheck | None
    """Check of the recipe; `None` if there is neither a recipe nor a table of answers."""
    tables: tuple[RunTableCheck, ...]
    ledgers: tuple[StartLogCheck, ...]

    @property
    def is_whole(self) -> bool:
        """Return whether nothing in the run is damaged; cut-off lines of start logs do not count."""
        recipe = "" if self.recipe is None else self.recipe.problem
        ledgers = any(ledger.problem for ledger in self.ledgers)
        return not recipe and not ledgers and all(table.is_whole for table in self.tables)

    @property
    def is_curation(self) -> bool:
        """Return whether the tables are steps of a curation, which can be repeated."""
        return are_curation_tables([f"{table.name}.lance" for table in self.tables])

    @property
    def is_later(self) -> bool:
        """Return whether a later release wrote the recipe or a table."""
        later = self.recipe is not None and self.recipe.is_later
        return later or any(table.is_later for table in self.tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRunLocation:
    """Location of a stored run or curation, and the local folder of its start logs."""

    place: StorageLocation
    ledgers: Path
    steps: TableCheckRule
    """Rule for tables that do not belong to a run: the steps of a curation."""

    def rule(self, name: str) -> TableCheckRule:
        """Return the check rule for the table `name`."""
        return _RULES.get(name, self.steps)

    def open(self, name: str) -> LanceTable:
        """Open the table `name` of the run."""
        return LanceTable(self.place / name, self.rule(name).schema)


def check_run(run: StoredRunLocation, examiner: TableChecker) -> RunCheck:
    """Check the recipe, tables and start logs of a run or a curation; nothing is changed.

    Raises:
        InvalidSettingError: The location has neither a run nor a curation.
        UnreadableSourceError: The storage cannot be reached.
    """
    return build_run_check(run, check_run_tables(run, examiner))


def check_run_tables(run: StoredRunLocation, examiner: TableChecker) -> dict[str, TableCheckResult]:
    """Read and check every table of the run completely; return the results by table path."""
    return {
        name: check_stored_table(run.open(name), examiner, run.rule(name).judge)
        for name in find_run_tables(run.place)
    }


def build_run_check(run: StoredRunLocation, tables: Mapping[str, TableCheckResult]) -> RunCheck:
    """Combine the checks of the run's tables with checks of its recipe and start logs."""
    location = run.place
    recipe = check_run_recipe_file(location)
    if recipe is None and _ANSWERS in tables:
        recipe = RunRecipeCheck(problem="is lost")
    if recipe is None and not tables:
        setting, problem = "run", f"{location.uri} contains no run"
        remedy = "Name a folder that `unreel eval --out` or `unreel curate` wrote"
        raise InvalidSettingError(setting, problem, remedy)
    return RunCheck(
        run=location.uri,
        recipe=recipe,
        tables=tuple(build_run_table_check(result, name) for name, result in tables.items()),
        ledgers=tuple(check_start_log(file) for file in find_start_logs(run.ledgers)),
    )


def find_run_tables(location: StorageLocation) -> list[str]:
    """Return the paths of the tables of a run or curation, relative to its location."""
    if not _location_exists(location):
        return []
    try:
        listed = [
            folder.rstrip("/")
            for below in (None, _STEPS)
            for folder in location.objects().list_with_delimiter(below)["common_prefixes"]
        ]
    except (BaseError, OSError) as error:
        remedy = "Check its address, bucket and keys, or try `unreel doctor --store`"
        raise UnreadableSourceError(location.uri, f"cannot list it: {error}", remedy) from error
    return sorted(name for name in listed if name.endswith(".lance"))


def are_curation_tables(tables: Collection[str]) -> bool:
    """Return whether tables with the names `tables` belong to a curation instead of a run."""
    return not set(tables) <= set(_RULES)


def build_run_table_check(result: TableCheckResult, name: str) -> RunTableCheck:
    """Build the check of the run's table `name` from the detailed `result`."""
    return RunTableCheck(
        name=name.removesuffix(".lance"),
        version=result.version,
        n_rows=result.n_rows,
        n_files=result.n_files,
        problems=result.problems,
        unreadable={path: reason for piece, reason in result.unreadable for path in piece.files},
        n_unreadable_rows=sum(piece.n_rows for piece, _ in result.unreadable),
        faults=result.faults,
        n_doubled=result.n_doubled,
        whole_version=None if result.is_whole else result.whole_version,
        n_older_files=result.n_older,
        n_leftover_files=len(result.loose) - result.n_older,
        writer=find_lock_holder(result.table.place),
    )


def check_run_recipe_file(location: StorageLocation) -> RunRecipeCheck | None:
    """Check the recipe of the run at `location`; `None` if it is missing, as after an early kill."""
    match find_run_recipe(location):
        case None:
            return None
        case UnusableRecipe(problem=problem, other_release=other_release):
            return RunRecipeCheck(problem=problem, is_later=other_release)
        case StoredRecipe(reviewer=reviewer, instrument=instrument):
            return RunRecipeCheck(reviewer=reviewer, instrument=str(instrument))


def _location_exists(location: StorageLocation) -> bool:
    return not location.is_local or location.path.is_dir()


def find_start_logs(folder: Path) -> list[Path]:
    """Return the start logs in a run's local directory, sorted."""
    return sorted(folder.glob("*.ledger"))


def check_start_log(file: Path) -> StartLogCheck:
    """Count the lines of a start log, and those that were cut off or are invalid."""
    n_lines = n_torn = 0
    try:
        with file.open("rb") as lines:
            for line in lines:
                n_lines += 1
                n_torn += not _is_valid_log_line(line)
    except OSError as error:
        return StartLogCheck(name=file.name, n_lines=n_lines, n_torn=n_torn, problem=str(error))
    return StartLogCheck(name=file.name, n_lines=n_lines, n_torn=n_torn)


def _is_valid_log_line(line: bytes) -> bool:
    return line.endswith(b"\n") and line[:1].decode(errors="replace") in SIGNS


_RULES: Final[Mapping[str, TableCheckRule]] = {
    _ANSWERS: TableCheckRule(ANSWERS, find_answer_fault),
    "clips.lance": TableCheckRule(CLIPS, find_clip_fault),
    "rulings.lance": TableCheckRule(RULINGS, find_ruling_fault),
}
