"""Check of a stored run, and restoration of its damaged tables to an earlier version."""

import os
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import get_context

from unreel.asking.answer_table import ANSWERS
from unreel.core.answer import digest_reply_text
from unreel.core.errors import InvalidSettingError, UnreadableSourceError, UnreelError
from unreel.core.question import Instrument, compute_question_key
from unreel.engine.clip_facts import CLIPS
from unreel.engine.location import StorageLocation, translate_store_errors
from unreel.engine.schema import LaterReleaseError, TableSchema
from unreel.engine.stage import Row, is_failed_row
from unreel.engine.table import LanceTable
from unreel.engine.writer_lock import build_writer_lock
from unreel.evaluation.judge import RULINGS, parse_ruling_row
from unreel.evaluation.run_job import DRIVER
from unreel.evaluation.stored_recipe import RECIPE_FILE, UnusableRecipe, find_run_recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPartCheck:
    """Result of the check of a run's recipe or of one of its tables."""

    name: str
    content: str = ""
    problem: str = ""
    """Reason why the part cannot be used; empty if it is intact."""
    intact_version: int | None = None
    """Latest intact version of a damaged table; `None` if there is none."""


def check_run(location: StorageLocation, step_schema: TableSchema) -> list[RunPartCheck]:
    """Check the recipe and read all rows of all tables of a run or a curation; change nothing.

    Args:
        location: Location of the run or of the working folder of a curation.
        step_schema: Schema of tables that are not part of a run: results of a curation's steps.

    Raises:
        InvalidSettingError: The location has neither a run nor a curation.
        UnreadableSourceError: The storage cannot be reached, or another release wrote the run.
    """
    tables = _find_tables(location, step_schema)
    recipe = find_run_recipe(location)
    parts: list[RunPartCheck] = []
    if isinstance(recipe, UnusableRecipe):
        if recipe.other_release:
            raise recipe.error(location.uri)
        parts.append(RunPartCheck(name="recipe", problem=f"{recipe.problem}; delete {RECIPE_FILE}"))
    elif recipe is not None:
        parts.append(RunPartCheck(name="recipe", content=f"{recipe.reviewer} {recipe.instrument}"))
    elif "answers" in tables:
        parts.append(RunPartCheck(name="recipe", problem="missing"))
    elif not tables:
        raise InvalidSettingError(
            "run",
            f"{location.uri} contains no run",
            "Name a folder that `unreel eval --out` or `unreel curate` wrote",
        )
    with _ChildReader() as reader:
        return parts + [_check_table(name, table, reader) for name, table in tables.items()]


def restore_run(location: StorageLocation, step_schema: TableSchema) -> dict[str, int]:
    """Restore each damaged table to its latest intact version; return the versions by table.

    The manifests of later versions are deleted. Rows that only these versions have are missing
    afterwards, so the next run asks their questions again.

    Raises:
        UnreadableSourceError: Another process writes the run, or a table has no intact version.
    """
    if not _find_tables(location, step_schema):
        check_run(
            location, step_schema
        )  # raises if there is no run, before a lock creates its folder
        return {}
    with build_writer_lock(location / DRIVER):
        restored = {}
        for part in check_run(location, step_schema):
            if part.name == "recipe" or not part.problem:
                continue
            if part.intact_version is None:
                raise UnreadableSourceError(
                    f"{location.uri}/{part.name}.lance",
                    f"{part.problem}; no earlier version is intact",
                    "Move this table away: the next run writes it again",
                )
            table = location / f"{part.name}.lance"
            for path in table.names():
                if path.endswith(".manifest") and _parse_version(path) > part.intact_version:
                    table.remove(path)
            restored[part.name] = part.intact_version
        return restored


def _find_tables(location: StorageLocation, step_schema: TableSchema) -> dict[str, LanceTable]:
    schemas = {"answers": ANSWERS, "clips": CLIPS, "rulings": RULINGS}
    if location.is_local and not location.path.is_dir():
        return {}
    with translate_store_errors():
        folders = [
            folder.rstrip("/")
            for prefix in (None, "steps/")
            for folder in location.objects().list_with_delimiter(prefix)["common_prefixes"]
        ]
    names = sorted(name.removesuffix(".lance") for name in folders if name.endswith(".lance"))
    return {
        name: LanceTable(location / f"{name}.lance", schemas.get(name, step_schema))
        for name in names
    }


class _ChildReader:
    """Reader of tables in a child process, because Lance can abort the process that reads a damaged file."""

    def __enter__(self) -> "_ChildReader":
        self._pool = ProcessPoolExecutor(1, get_context("spawn"), initializer=_silence_stderr)
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def read(self, name: str, table: LanceTable, version: int) -> tuple[int, str]:
        """Return the number of readable rows of a version, and the first problem or an empty text."""
        try:
            return self._pool.submit(_read_version, name, table, version).result()
        except BrokenProcessPool:
            self.__enter__()
            return 0, "reading it ends the process that reads it"


def _check_table(name: str, table: LanceTable, reader: _ChildReader) -> RunPartCheck:
    """Read the versions of a table, the latest first, up to the first intact one."""
    versions = sorted(
        (_parse_version(path) for path in table.files() if path.endswith(".manifest")), reverse=True
    )
    latest = RunPartCheck(name=name, problem="all manifests are missing")
    for version in versions:
        n_rows, problem = reader.read(name, table, version)
        if version == versions[0]:
            content = f"{n_rows:,} rows, version {version}"
            latest = RunPartCheck(name=name, content=content, problem=problem)
        if not problem:
            return latest if version == versions[0] else replace(latest, intact_version=version)
    return latest


def _read_version(name: str, table: LanceTable, version: int) -> tuple[int, str]:
    n_rows = 0
    try:
        for row in table.rows(version=version):
            n_rows += 1
            if fault := _find_row_fault(name, row):
                return n_rows, f"row {row['key']}: {fault}"
    except LaterReleaseError:
        raise
    except UnreelError as error:
        return n_rows, error.problem if isinstance(error, UnreadableSourceError) else str(error)
    return n_rows, ""


def _find_row_fault(name: str, row: Row) -> str:
    """Return why a row of the table `name` has values that unreel does not write, or an empty text."""
    if name == "answers":
        clips = [clip for clip in (row["clip"], row["second"]) if clip]
        instrument = Instrument(row["protocol"] or "", row["protocol_version"] or 0)
        key = compute_question_key(clips, row["reviewer"] or "", instrument, row["condition"] or "")
        if key != row["key"]:
            return "its key does not match its question"
        text, reply_digest = row["text"], row["reply_digest"]
        if text is not None and reply_digest not in (None, digest_reply_text(text)):
            return "its text differs from the received reply"
    if name == "rulings" and not (is_failed_row(row) or parse_ruling_row(row).is_settled):
        return "neither a score nor a reason why there is none"
    return ""


def _parse_version(manifest: str) -> int:
    """Return the version in a manifest's name; Lance subtracts it from 2**64 - 1 in newer tables."""
    number = int(manifest.removeprefix("_versions/").removesuffix(".manifest"))
    return number if number < 2**63 else 2**64 - 1 - number


def _silence_stderr() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
