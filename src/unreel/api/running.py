"""`evaluate` and `open_run`: a benchmark before a reviewer, from Python, and what is kept of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from unreel.api.models import (
    Model,
    RecipeKeys,
    Way,
    fields_of,
    require_parser,
    require_reviewer,
)
from unreel.core.errors import InvalidSettingError
from unreel.core.estimate import Scorecard
from unreel.core.notebook import html_table
from unreel.core.plain import plain
from unreel.core.question import Condition
from unreel.core.registry import LazyImport
from unreel.engine.progress import Progress
from unreel.protocols.protocol import Mode
from unreel.recipes.check import given

if TYPE_CHECKING:  # what reads and writes tables comes with an extra
    import pandas as pd

    from unreel.evaluation import job


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """A run that is kept: its answers, and what they say. Nobody is asked again.

    `evaluate` and `open_run` make it.
    """

    _kept: "job.EvalRun"

    @property
    def place(self) -> str:
        """The folder or prefix that holds it."""
        return self._kept.place.uri

    @property
    def reviewer(self) -> str:
        """The name that its answers carry."""
        return self._kept.reviewer_name()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Return the conditions of its questions."""
        return self._kept.recipe.conditions

    def scores(self, *, parser: Mode | None = None) -> Mapping[Condition, Scorecard]:
        """A scorecard for each condition; where no parser is named, the one that the run was given reads.

        Raises:
            UnreadableSourceError: The benchmark or the run cannot be read.
        """
        from unreel.evaluation.scoring import score_run

        found = score_run(self._kept, mode=self._parser(parser))
        return {score.condition: score.scorecard for score in found}

    def score(self, *, parser: Mode | None = None) -> Scorecard:
        """The scorecard of a run with one condition.

        Raises:
            InvalidSettingError: It has several: see `scores`.
            UnreadableSourceError: The benchmark or the run cannot be read.
        """
        if len(self.conditions) != 1:
            setting, problem = "run", f"{self.place} has {len(self.conditions)} conditions"
            raise InvalidSettingError(setting, problem, "Use scores(), one for each")
        (card,) = self.scores(parser=parser).values()
        return card

    def rows(self, *, parser: Mode | None = None) -> Iterator[Mapping[str, Any]]:
        """Every question with its truth, what came back and what it says, as `unreel export` writes them.

        One row is held at a time.
        """
        from unreel.evaluation.export import export_rows

        return export_rows(self._kept, mode=self._parser(parser))

    def to_pandas(self, *, parser: Mode | None = None) -> "pd.DataFrame":
        """The rows as a data frame; `correct` is true, false, or missing without an answer that can be read.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        frame = LazyImport("pandas:DataFrame", "pandas").load()
        return frame(list(self.rows(parser=parser))).astype({"correct": "boolean"})

    def report(self, out: str | Path) -> Path:
        """Write the run as pages to look at, below the folder `out`; the page to open.

        Raises:
            MissingExtraError: What writes pages is not installed.
            UnsafeTargetError: `out` holds something that a page cannot be written over.
        """
        write_report = LazyImport("unreel.report.site:write_report", "report").load()
        page: Path = write_report([self._kept], Path(out)).page
        return page

    def _parser(self, named: Mode | None) -> Mode:
        return require_parser(named) if named else self._kept.recipe.reviewer.parser

    def __repr__(self) -> str:
        recipe = self._kept.recipe
        asked = f"{recipe.reviewer.model} on {recipe.benchmark}, {recipe.protocol}"
        return plain(f"<Run {self.place}: {asked}>")

    def _repr_html_(self) -> str:
        cards = self.scores().items()
        rows = [("reviewer", self.reviewer), ("place", self.place)]
        return html_table("Run", (), rows) + "".join(
            html_table("Condition", (), condition.written().items()) + card._repr_html_()
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
    """Put the questions of `protocol` about `benchmark` to `model`, and keep what comes back.

    What the run at `out` holds already is not asked again, so the same call goes on where an earlier one
    ended. A question that has no answer is a row with its reason.

    Args:
        benchmark: folder or table of clips with their truth.
        model: `provider/name`, a floor such as `coin`, or an object that answers sheets.
        protocol: the instrument: `trace`, `realism`, `reality` or `preference`.
        conditions: how questions are put, for example `[{"sampling": "uniform-16"}]`.
        out: folder or `s3://bucket/prefix`; below `runs/` by default, as with `unreel eval`.
        engine: `local` or `ray`; an object needs `local`.
        retry_failed: ask again what failed.
        trusted: open clips in this process; by default a confined child does.
        allow_outside: let a table name files outside its folder; for tables of your own only.
        accept_changed: go on with the run at `out` although it asked otherwise, or about another benchmark.
        on_progress: told `clips` or `answers` and how far that part is, from another thread. Without it
            a terminal shows a progress bar on stderr; elsewhere nothing is shown.
        recipe: further keys of a recipe: `limit`, `split`, `seed`, `deadline_s`, ...

    Raises:
        InvalidSettingError: Something was asked that nobody can do.
        MissingExtraError: What keeps answers is not installed.
        UnreadableSourceError: The benchmark or the run cannot be read.
    """
    require_reviewer(model)
    if not isinstance(model, str) and engine != "local":
        setting, problem = (
            "engine",
            f"{engine} asks elsewhere, and the object {model.name!r} is here",
        )
        remedy = "Use engine='local', or bring it as a package: see docs/plugins.md"
        raise InvalidSettingError(setting, problem, remedy)
    asked = given(recipe) | {"benchmark": str(benchmark), "protocol": protocol}
    if conditions:
        asked["condition"] = [fields_of(way) for way in conditions]
    start = LazyImport("unreel.api.run_job:start", "eval").load()
    kept = start(
        asked,
        model,
        out=out,
        engine=engine,
        retry_failed=retry_failed,
        trusted=trusted,
        allow_outside=allow_outside,
        accept_changed=accept_changed,
        on_progress=on_progress,
    )
    return Run(kept)


def open_run(
    place: str | Path,
    *,
    benchmark: str | Path | None = None,
    allow_outside: bool = False,
    accept_changed: bool = False,
) -> Run:
    """The run that `unreel eval` or `evaluate` keeps at a folder or `s3://bucket/prefix`.

    Args:
        place: where it is kept.
        benchmark: where its benchmark lies now; the run knows where it was, seen from itself too.
        allow_outside: let its table name files outside its folder, as it was asked.
        accept_changed: score by the benchmark as it is now, although the run asked about another one.

    Raises:
        InvalidSettingError: There is none.
        MissingExtraError: What reads answers is not installed.
        UnreadableSourceError: It is damaged, or of another release.
    """
    find = LazyImport("unreel.api.run_job:find", "eval").load()
    moved_to = None if benchmark is None else Path(benchmark)
    said = {"allow_outside": allow_outside, "accept_changed": accept_changed}
    return Run(find(str(place), benchmark=moved_to, **said))
