"""Check of a stored run, and restoration of its damaged tables to an earlier version."""

import os
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context

from unreel.asking.answer_table import ANSWERS
from unreel.core.answer import digest_reply_text
from unreel.core.errors import InvalidSettingError, UnreadableSourceError, UnreelError
from unreel.core.question import Instrument, compute_question_key
from unreel.engine.clip_facts import CLIPS
from unreel.engine.location import StorageLocation, translate_store_errors
from unreel.engine.schema import LaterReleaseError, TableSchema
from unreel.engine.stage import is_failed_row
from unreel.engine.table import LanceTable
from unreel.engine.writer_lock import build_writer_lock
from unreel.evaluation.judge import RULINGS, parse_ruling_row
from unreel.evaluation.run_job import DRIVER
from unreel.evaluation.stored_recipe import RECIPE_FILE, UnusableRecipe, find_run_recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPartCheck:
    """Result of the check of a run's recipe or of one of its tables; `problem` is empty if the part is intact."""

    name: str
    content: str = ""
    problem: str = ""
    intact_version: int | None = None
    """Latest intact version of a damaged table; `None` if there is none."""


def check_run(location: StorageLocation, step_schema: TableSchema) -> list[RunPartCheck]:
    """Check the recipe and read all rows of all tables of a run or a curation; change nothing.

    `step_schema` is the schema of tables that are not part of a run: results of a curation's steps.
    """
    tables, recipe = _find_tables(location, step_schema), find_run_recipe(location)
    content = problem = ""
    if isinstance(recipe, UnusableRecipe):
        if recipe.other_release:
            raise recipe.error(location.uri)
        problem = f"{recipe.problem}; delete {RECIPE_FILE}"
    elif recipe is not None:
        content = f"{recipe.reviewer} {recipe.instrument}"
    elif "answers" in tables:
        problem = "missing"
    elif not tables:
        remedy = "Name a folder that `unreel eval --out` or `unreel curate` wrote"
        raise InvalidSettingError("run", f"{location.uri} contains no run", remedy)
    part = RunPartCheck(name="recipe", content=content, problem=problem)
    parts = [part] if content or problem else []
    # A child process reads the tables, because Lance can abort the process that reads a damaged file.
    open_pool = partial(ProcessPoolExecutor, 1, get_context("spawn"), initializer=_silence_stderr)
    with ExitStack() as stack:
        pool = stack.enter_context(open_pool())
        for name, table in tables.items():
            names = [path for path in table.files() if path.endswith(".manifest")]
            versions = sorted(map(_parse_version, names), reverse=True)
            part = RunPartCheck(name=name, problem="all manifests are missing")
            for version in versions:  # from the latest to the first intact one
                try:
                    n_rows, problem = pool.submit(_read_version, name, table, version).result()
                except BrokenProcessPool:
                    n_rows, problem = 0, "reading it ends the process that reads it"
                    pool = stack.enter_context(open_pool())
                if version == versions[0]:
                    text = f"{n_rows:,} rows, version {version}"
                    part = RunPartCheck(name=name, content=text, problem=problem)
                elif not problem:
                    part = replace(part, intact_version=version)
                if not problem:
                    break
            parts.append(part)
    return parts


def restore_run(location: StorageLocation, step_schema: TableSchema) -> dict[str, int]:
    """Restore each damaged table to its latest intact version; return the versions by table.

    Rows that only later versions have are missing then, so the next run asks their questions again.
    """
    if not _find_tables(location, step_schema):
        check_run(location, step_schema)  # raises before a lock creates the folder
        return {}
    with build_writer_lock(location / DRIVER):
        restored = {}
        parts = check_run(location, step_schema)
        for part in (part for part in parts if part.problem and part.name != "recipe"):
            if part.intact_version is None:
                problem = f"{part.problem}; no earlier version is intact"
                remedy = "Move this table away: the next run writes it again"
                raise UnreadableSourceError(f"{location.uri}/{part.name}.lance", problem, remedy)
            table = location / f"{part.name}.lance"
            for path in table.names():
                if path.endswith(".manifest") and _parse_version(path) > part.intact_version:
                    table.remove(path)
            restored[part.name] = part.intact_version
        return restored


def _find_tables(location: StorageLocation, step_schema: TableSchema) -> dict[str, LanceTable]:
    if location.is_local and not location.path.is_dir():
        return {}
    with translate_store_errors():
        listings = [location.objects().list_with_delimiter(prefix) for prefix in (None, "steps/")]
    folders = [folder.rstrip("/") for each in listings for folder in each["common_prefixes"]]
    names = sorted(name.removesuffix(".lance") for name in folders if name.endswith(".lance"))
    schemas = {"answers": ANSWERS, "clips": CLIPS, "rulings": RULINGS}
    return {n: LanceTable(location / f"{n}.lance", schemas.get(n, step_schema)) for n in names}


def _read_version(name: str, table: LanceTable, version: int) -> tuple[int, str]:
    """Return the number of readable rows of a version, and the first problem or an empty text."""
    n_rows = 0
    try:
        for n_rows, row in enumerate(table.rows(version=version), start=1):
            problem = ""
            if name == "answers":
                clips = [clip for clip in (row["clip"], row["second"]) if clip]
                instrument = Instrument(row["protocol"] or "", row["protocol_version"] or 0)
                condition, reviewer = row["condition"] or "", row["reviewer"] or ""
                text, reply_digest = row["text"], row["reply_digest"]
                if row["key"] != compute_question_key(clips, reviewer, instrument, condition):
                    problem = "the key does not match the question"
                elif text is not None and reply_digest not in (None, digest_reply_text(text)):
                    problem = "the text differs from the received reply"
            elif name == "rulings" and not (is_failed_row(row) or parse_ruling_row(row).is_final):
                problem = "neither a score nor a reason why there is none"
            if problem:
                return n_rows, f"row {row['key']}: {problem}"
    except LaterReleaseError:
        raise
    except UnreelError as error:
        return n_rows, error.problem if isinstance(error, UnreadableSourceError) else str(error)
    return n_rows, ""


def _parse_version(manifest: str) -> int:
    """Return the version in a manifest's name; Lance subtracts it from 2**64 - 1 in newer tables."""
    number = int(manifest.removeprefix("_versions/").removesuffix(".manifest"))
    return number if number < 2**63 else 2**64 - 1 - number


def _silence_stderr() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
