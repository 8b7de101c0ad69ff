"""`evaluate`, `open_run` and `compare`: evaluation of a model from Python, stored runs and their differences."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

from unreel.api.keyword_types import (
    Model,
    RecipeKeys,
    Way,
    convert_condition_to_fields,
    require_parser_name,
    require_reviewer_object,
)
from unreel.api.shared_settings import TableSettings
from unreel.core.command_options import FOLDER, Option
from unreel.core.comparison import Comparisons
from unreel.core.errors import InvalidSettingError, UnreadableSourceError, UnreelError
from unreel.core.estimate import Scorecard
from unreel.core.question import Condition
from unreel.core.registry import LazyImport, needs_extra
from unreel.core.safe_text import sanitise_line
from unreel.core.settings import read_environment_settings, read_storage_options
from unreel.core.table_formats import build_html_table
from unreel.engine.progress import Progress, ProgressLine
from unreel.protocols.protocol import Mode, get_protocol

if TYPE_CHECKING:  # table libraries are an extra
    import pandas as pd

    from unreel.evaluation import run_job
    from unreel.evaluation.run_check import RunPartCheck
    from unreel.report.site import WrittenReport


@dataclass(frozen=True, kw_only=True)
class StoredRunSettings(TableSettings):
    """Settings of a command that reads stored runs."""

    moved_to: Annotated[
        Path | None, Option(name="--benchmark", kind="existing", metavar="PATH")
    ] = None
    """New path of the benchmark of the runs, if it has been moved."""
    accept_changed: bool = False
    """Continue even if the benchmark or the recipe has changed since the run began."""


def open_noted_run(
    name: str, settings: StoredRunSettings, on_note: Callable[[str], None]
) -> "run_job.EvalRun":
    """Open the run at `name`; `on_note` receives a warning if it does not store which benchmark it used."""
    with needs_extra("eval"):
        from unreel.evaluation.run_lookup import open_named_run

    run = open_named_run(
        name,
        read_environment_settings(),
        moved_to=settings.moved_to,
        outside=settings.allow_outside,
        accept_changed=settings.accept_changed,
    )
    if run.stored_benchmark is None or run.stored_benchmark.identity is None:
        on_note(
            f"{name}: the recipe does not identify the benchmark; it is assumed to be "
            f"{run.benchmark_path}. The next `unreel eval` of the run stores its fingerprint"
        )
    return run


def open_noted_runs(
    names: Sequence[str], settings: StoredRunSettings, on_note: Callable[[str], None]
) -> "list[run_job.EvalRun]":
    """Open runs, or all runs in folders."""
    with needs_extra("eval"):
        from unreel.evaluation.run_lookup import resolve_run_names

    names = resolve_run_names(names, read_environment_settings())
    return [open_noted_run(name, settings, on_note) for name in names]


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """Stored run with answers and scores. No question is sent again.

    `evaluate` and `open_run` return it.
    """

    _run: "run_job.EvalRun"

    @property
    def place(self) -> str:
        """Return the URI of the directory or prefix that contains the run."""
        return self._run.place.uri

    @property
    def reviewer(self) -> str:
        """Return the reviewer's name in the run's answers."""
        return self._run.reviewer_name()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Return the conditions of the run's questions."""
        return self._run.recipe.conditions

    def scores(self, *, parser: Mode | None = None) -> Mapping[Condition, Scorecard]:
        """Return a scorecard for each condition; `parser` defaults to the parser of the run.

        Raises:
            UnreadableSourceError: The benchmark or the run cannot be read.
        """
        from unreel.evaluation.scoring import score_run

        scores = score_run(self._run, mode=self._parser(parser))
        return {score.condition: score.scorecard for score in scores}

    def score(self, *, parser: Mode | None = None) -> Scorecard:
        """Return the scorecard of a run with one condition.

        Raises:
            InvalidSettingError: The run has several conditions; use `scores`.
            UnreadableSourceError: The benchmark or the run cannot be read.
        """
        if len(self.conditions) != 1:
            raise InvalidSettingError(
                "run",
                f"{self.place} has {len(self.conditions)} conditions",
                "Use scores(), one for each",
            )
        (card,) = self.scores(parser=parser).values()
        return card

    def rows(self, *, parser: Mode | None = None) -> Iterator[Mapping[str, Any]]:
        """Yield each question with its truth, reply and parsed answer, in the format of `unreel export`.

        Only one row is in memory at a time.
        """
        from unreel.evaluation.export import iter_question_rows

        return iter_question_rows(self._run, mode=self._parser(parser))

    def to_pandas(self, *, parser: Mode | None = None) -> "pd.DataFrame":
        """Return the rows as a data frame; `correct` is true, false, or missing if no answer is readable.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        frame = LazyImport("pandas:DataFrame", "pandas").load()
        return frame(list(self.rows(parser=parser))).astype({"correct": "boolean"})

    def report(self, out: str | Path) -> Path:
        """Write the run as HTML pages below the folder `out`; return the page to open.

        Raises:
            MissingExtraError: A package for pages is not installed.
            UnsafeTargetError: `out` contains something that a page must not overwrite.
        """
        write_report = LazyImport("unreel.report.site:write_report", "eval").load()
        page: Path = write_report([self._run], Path(out)).page
        return page

    def _parser(self, named: Mode | None) -> Mode:
        return require_parser_name(named) if named else self._run.recipe.reviewer.parser

    def __repr__(self) -> str:
        recipe = self._run.recipe
        subject = f"{recipe.reviewer.model} on {recipe.benchmark}, {recipe.protocol}"
        return sanitise_line(f"<Run {self.place}: {subject}>")

    def _repr_html_(self) -> str:
        cards = self.scores().items()
        rows = [("reviewer", self.reviewer), ("place", self.place)]
        return build_html_table("Run", (), rows) + "".join(
            build_html_table("Condition", (), condition.written().items()) + card._repr_html_()
            for condition, card in cards
        )


def evaluate(  # noqa: PLR0913  what `unreel eval` takes
    benchmark: str | Path,
    *,
    model: Model,
    protocol: str,
    conditions: Sequence[Way] = (),
    out: str | Path | None = None,
    engine: str = "local",
    retry_failed: bool = False,
    trusted: bool = False,
    allow_outside: bool = False,
    accept_changed: bool = False,
    on_progress: Callable[[str, Progress], None] | None = None,
    **recipe: Unpack[RecipeKeys],
) -> Run:
    """Send the questions of `protocol` about `benchmark` to `model`, and store the answers.

    Stored answers of the run at `out` are not requested again, so the same call resumes an earlier
    one. A question without an answer is a row with its reason.

    Args:
        benchmark: Folder or table of clips with their ground truth.
        model: `provider/name`, a baseline such as `coin`, or an object that answers requests.
        protocol: The protocol: `trace`, `realism`, `reality` or `preference`.
        conditions: Input settings, for example `[{"sampling": "uniform-16"}]`.
        out: Folder or `s3://bucket/prefix`; below `runs/` by default, as with `unreel eval`.
        engine: `local` or `ray`; an object needs `local`.
        retry_failed: Retry failed questions.
        trusted: Open clips in this process; by default a confined child does.
        allow_outside: Let a table name files outside its folder; only for your own tables.
        accept_changed: Resume the run at `out` although its settings or its benchmark differ.
        on_progress: Callback with `clips` or `answers` and the progress of that part, called from
            another thread. Without it a terminal shows a progress bar on stderr; elsewhere nothing
            is shown.
        recipe: Further keys of a recipe: `limit`, `split`, `seed`, `deadline_s`, ...

    Raises:
        InvalidSettingError: A setting is unsupported.
        MissingExtraError: A required package is not installed.
        UnreadableSourceError: The benchmark or the run cannot be read.
    """
    from unreel.recipes.validation import drop_unset_keys

    require_reviewer_object(model)
    if not isinstance(model, str) and engine != "local":
        raise InvalidSettingError(
            "engine",
            f"{engine} asks elsewhere, and the object {model.name!r} is here",
            "Use engine='local', or bring it as a package: see docs/plugins.md",
        )
    settings = drop_unset_keys(recipe) | {"benchmark": str(benchmark), "protocol": protocol}
    if conditions:
        settings["condition"] = [convert_condition_to_fields(way) for way in conditions]
    with needs_extra("eval"):
        from unreel.api.progress_bar import show_progress
        from unreel.engine.run import ALL_FAILURES
        from unreel.evaluation.recipe import validate_eval_recipe
        from unreel.evaluation.run_job import evaluate as evaluate_run
        from unreel.evaluation.run_lookup import build_eval_run
        from unreel.media.access import require_sandbox_protection
        from unreel.reviewers.config import OBJECT

    settings["model"] = model if isinstance(model, str) else f"{OBJECT}{model.name}"
    environment = read_environment_settings()
    require_sandbox_protection(environment, trusted=trusted)
    run = build_eval_run(
        validate_eval_recipe(settings),
        out,
        environment,
        trusted=trusted,
        outside=allow_outside,
        accept_changed=accept_changed,
    )
    with nullcontext(ProgressLine()) if on_progress else show_progress() as line:
        callbacks = line.callbacks(
            on_note=lambda note: warnings.warn(note, UserWarning, stacklevel=4)
        )
        evaluate_run(
            run,
            engine=engine,
            retry_failed=ALL_FAILURES if retry_failed else (),
            reviewer=None if isinstance(model, str) else model,
            callbacks=replace(callbacks, on_step=on_progress or line.step),
        )
    return Run(run)


def open_run(
    place: str | Path,
    *,
    benchmark: str | Path | None = None,
    allow_outside: bool = False,
    accept_changed: bool = False,
) -> Run:
    """Open the run of `unreel eval` or `evaluate` at a folder or `s3://bucket/prefix`.

    Args:
        place: Location of the run.
        benchmark: Present location of its benchmark; the default is the stored one, also relative
            to the run.
        allow_outside: Let its table name files outside its folder, as in the original call.
        accept_changed: Score by the present benchmark, although the run used another one.

    Raises:
        InvalidSettingError: There is no run at `place`.
        MissingExtraError: A required package is not installed.
        UnreadableSourceError: The run is damaged, or was written by another release.
    """
    with needs_extra("eval"):
        from unreel.evaluation.run_lookup import open_named_run

    run = open_named_run(
        str(place),
        read_environment_settings(),
        moved_to=None if benchmark is None else Path(benchmark),
        outside=allow_outside,
        accept_changed=accept_changed,
    )
    return Run(run)


def compare(
    *runs: str | Path | Run,
    metrics: Sequence[str] = (),
    parser: Mode | None = None,
    judge: str | None = None,
) -> Comparisons:
    """Return the differences between each two runs on the clips that both judged; no question is sent.

    A run under several conditions counts as several. P-values are corrected for all returned
    differences.

    Args:
        runs: Folders or `s3://bucket/prefix` of `evaluate` or `unreel eval`, or runs.
        metrics: Metrics of the scorecard, for example `["balanced", "caught"]`; by default those of
            the protocol.
        parser: Parser of the answers; by default that of each run's recipe.
        judge: Model whose stored scores of explanations, from `unreel score --judge`, are used.

    Raises:
        InvalidSettingError: The runs have other protocols, or other clips.
        MissingExtraError: A required package is not installed.
        UnknownNameError: No metric or parser has that name.
        UnreadableSourceError: A run or its benchmark cannot be read.
    """
    with needs_extra("eval"):
        from unreel.evaluation.comparison import compare_runs
        from unreel.evaluation.run_lookup import open_named_run

    environment = read_environment_settings()
    stored = [
        run._run if isinstance(run, Run) else open_named_run(str(run), environment)  # noqa: SLF001  one house
        for run in runs
    ]
    mode = None if parser is None else require_parser_name(parser)
    return compare_runs(stored, metrics=metrics, parser=mode, judge=judge)


@dataclass(frozen=True, kw_only=True)
class CompareSettings(StoredRunSettings):
    """Settings of `compare_runs`."""

    runs: Annotated[tuple[str, ...], Option(is_argument=True, is_required=True, kind="run")]
    metrics: Annotated[tuple[str, ...], Option(name="--metric", metavar="NAME")] = ()
    """Name of a metric in the scorecard, for example `balanced`. Repeatable.  [default: all metrics]"""
    parser: Mode | None = None
    """Parser of the answers. strict: accepts only the requested format; lenient: also accepts common variations.  [default: that of each run's recipe]"""
    judge: Annotated[str | None, Option(metavar="MODEL")] = None
    """Model whose stored scores of the explanations are used. `unreel score --judge MODEL` computes and stores them."""


def compare_runs(settings: CompareSettings, on_note: Callable[[str], None]) -> Comparisons:
    """Return the differences between each two runs on the clips that both judged."""
    with needs_extra("eval"):
        from unreel.evaluation.comparison import compare_runs

    runs = open_noted_runs(settings.runs, settings, on_note)
    return compare_runs(
        runs, metrics=settings.metrics, parser=settings.parser, judge=settings.judge
    )


def find_counting_metrics(comparisons: Comparisons, names: Sequence[str]) -> list[str]:
    """Return those of the metrics `names` in which unreadable answers count as wrong."""
    metrics = get_protocol(comparisons.instrument.protocol).figures
    return [name for name in names if metrics.counts(name) != "readable"]


@dataclass(frozen=True, kw_only=True)
class ReportSettings(StoredRunSettings):
    """Settings of `write_report`."""

    runs: Annotated[tuple[str, ...], Option(is_argument=True, is_required=True, kind="run")]
    out: Annotated[Path, FOLDER] = Path("report")
    """Output folder for the report."""
    media: Literal["link", "copy", "none"] = "link"
    """How clips get into the output folder; they are never re-encoded. link: links to the files; copy: copies; none: no clips."""
    judge: Annotated[str | None, Option(metavar="MODEL")] = None
    """Model whose stored scores of the explanations are used. `unreel score --judge MODEL` computes and stores them."""


def write_report(settings: ReportSettings, on_note: Callable[[str], None]) -> "WrittenReport":
    """Write an HTML report about runs."""
    with needs_extra("eval"):
        from unreel.report.site import write_report

    runs = open_noted_runs(settings.runs, settings, on_note)
    return write_report(runs, settings.out, media=settings.media, judge=settings.judge)


def list_runs(folder: str) -> list[dict[str, object]]:
    """Return a row for each run in a folder: model, protocol, benchmark, and numbers of answers.

    Raises:
        UnreadableSourceError: The folder does not exist.
    """
    if "://" not in folder and not Path(folder).is_dir():
        raise UnreadableSourceError(
            folder,
            "no such folder",
            "Name the folder that contains your runs, or start one with `unreel eval`",
        )
    with needs_extra("eval"):
        from unreel.evaluation.run_lookup import find_runs, open_named_run

    environment = read_environment_settings()
    rows = []
    for name in find_runs(folder, environment):
        row: dict[str, object] = {"run": name, "reviewer": "?", "instrument": "?", "benchmark": "?"}
        row |= {"answered": "?", "failed": "?", "problem": ""}
        try:
            run = open_named_run(name, environment)
            row |= {
                "reviewer": run.reviewer_name(),
                "instrument": str(run.scope.instrument),
                "benchmark": run.recipe.benchmark,
            }
            failures = run.answers.failures()
            answered = run.answers.count("failure_reason IS NULL")
            row |= {"answered": answered, "failed": sum(failures.values())}
        except UnreelError as error:
            row["problem"] = str(error)
        rows.append(row)
    return rows


def check_run(run: str) -> "tuple[str, Sequence[RunPartCheck]]":
    """Read the recipe and all rows of a run; return its location and its parts with their problems."""
    with needs_extra("eval"):
        from unreel.curation.step_execution import FINDINGS
        from unreel.engine.location import resolve_location
        from unreel.evaluation.run_check import check_run

    location = resolve_location(run, read_storage_options(read_environment_settings()))
    return location.uri, check_run(location, FINDINGS)


def restore_run(run: str) -> tuple[str, Mapping[str, int]]:
    """Restore each damaged table of a run to its latest intact version; return location and versions."""
    with needs_extra("eval"):
        from unreel.curation.step_execution import FINDINGS
        from unreel.engine.location import resolve_location
        from unreel.evaluation.run_check import restore_run

    location = resolve_location(run, read_storage_options(read_environment_settings()))
    return location.uri, restore_run(location, FINDINGS)
