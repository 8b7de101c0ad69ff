"""`evaluate` and `open_run`: a benchmark before a reviewer, from Python, and what is kept of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from unreel.core.errors import InvalidSettingError, MissingExtraError
from unreel.core.estimate import Scorecard
from unreel.core.names import plain_name
from unreel.core.question import Condition
from unreel.core.registry import Lazy
from unreel.core.settings import read_settings
from unreel.engine.committer import Progress
from unreel.engine.run import ALL_FAILURES
from unreel.engine.whereabouts import find_place, local_folder, open_access
from unreel.evaluate import job
from unreel.evaluate.export import export_rows
from unreel.evaluate.finding import open_named_run
from unreel.evaluate.recipe import check_recipe
from unreel.evaluate.scoring import score_run
from unreel.media.access import require_protection
from unreel.protocols.protocol import Mode
from unreel.reviewers.contract import Reviewer
from unreel.reviewers.section import OBJECT

if TYPE_CHECKING:
    import pandas as pd

RUNS: Final = "runs"
"""Where runs are kept by default, as with `unreel eval`."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is kept: its answers, and what they say. Nobody is asked again."""

    kept: job.Run
    """The same as the engine knows it."""

    @property
    def place(self) -> str:
        """The folder or prefix that holds it."""
        return self.kept.place.uri

    @property
    def reviewer(self) -> str:
        """The name that its answers carry."""
        return self.kept.reviewer_name()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """How its questions were put."""
        return self.kept.recipe.conditions

    def scores(self, *, parser: Mode | None = None) -> Mapping[Condition, Scorecard]:
        """A scorecard for each condition; the recipe's own parser reads, where none is named."""
        found = score_run(self.kept, mode=parser or self.kept.recipe.reviewer.parser)
        return {score.condition: score.scorecard for score in found}

    def score(self, *, parser: Mode | None = None) -> Scorecard:
        """The scorecard of a run with one condition.

        Raises:
            InvalidSettingError: It has several: see `scores`.
        """
        scores = self.scores(parser=parser)
        if len(scores) != 1:
            setting, problem = "run", f"{self.place} has {len(scores)} conditions"
            raise InvalidSettingError(setting, problem, "Use scores(), one for each")
        (card,) = scores.values()
        return card

    def rows(self, *, parser: Mode | None = None) -> Iterator[Mapping[str, Any]]:
        """Every question with its truth, what came back and what it says; as `unreel export` writes."""
        return export_rows(self.kept, mode=parser or self.kept.recipe.reviewer.parser)

    def to_pandas(self, *, parser: Mode | None = None) -> "pd.DataFrame":
        """The rows as a data frame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            package, extra = "pandas", "arena"
            raise MissingExtraError(package, extra) from error
        return pd.DataFrame(list(self.rows(parser=parser)))

    def report(self, out: str | Path) -> Path:
        """Write the run as pages to look at, below `out`; the page to open."""
        write_report = Lazy("unreel.report.site:write_report", "report").load()
        page: Path = write_report([self.kept], Path(out)).page
        return page

    def _repr_html_(self) -> str:
        return "".join(card._repr_html_() for card in self.scores().values())


def evaluate(  # noqa: PLR0913  what `unreel eval` takes
    benchmark: str | Path,
    *,
    model: str | Reviewer,
    protocol: str,
    conditions: Sequence[Mapping[str, str]] = (),
    out: str | Path | None = None,
    engine: str = "local",
    retry_failed: bool = False,
    trusted: bool = False,
    on_progress: Callable[[str, Progress], None] = lambda _part, _progress: None,
    **recipe: Any,
) -> Run:
    """Put the questions of `protocol` about `benchmark` to `model`, and keep what comes back.

    What the run at `out` holds already is not asked again.

    Args:
        benchmark: folder or table of clips with their truth.
        model: `provider/name`, a floor such as `coin`, or an object that answers sheets.
        protocol: the instrument: `trace`, `realism`, `reality` or `preference`.
        conditions: how questions are put, for example `[{"sampling": "uniform-16"}]`.
        out: folder or `s3://bucket/prefix`; below `runs/` by default, as with `unreel eval`.
        engine: `local` or `ray`; an object needs `local`.
        retry_failed: ask again what failed.
        trusted: open clips in this process; by default a confined child does.
        on_progress: told `clips` or `answers` and how far that part is, from another thread.
        recipe: further keys of a recipe: `limit`, `split`, `seed`, `deadline_s`, ...

    Raises:
        InvalidSettingError: Something was asked that nobody can do.
        UnreadableSourceError: The benchmark or the run cannot be read.
    """
    named = model if isinstance(model, str) else f"{OBJECT}{model.name}"
    asked = {"benchmark": str(benchmark), "protocol": protocol, "model": named}
    if conditions:
        recipe["condition"] = list(conditions)
    resolved = check_recipe(recipe | asked)
    settings = read_settings()
    require_protection(settings, trusted=trusted)
    access = open_access(settings, trusted=trusted)
    place = find_place(str(out or Path(RUNS) / _slug(named, protocol, benchmark)), access.storage)
    run = job.Run(
        place=place, recipe=resolved, access=access, ledgers=local_folder(place, settings)
    )
    job.evaluate(
        run,
        engine=engine,
        retry_failed=ALL_FAILURES if retry_failed else (),
        reviewer=None if isinstance(model, str) else model,
        on_step=on_progress,
    )
    return Run(run)


def open_run(place: str | Path) -> Run:
    """The run that `unreel eval` or `evaluate` keeps at a folder or `s3://bucket/prefix`.

    Raises:
        InvalidSettingError: There is none.
        UnreadableSourceError: It is damaged, or of another release.
    """
    return Run(open_named_run(str(place), read_settings()))


def _slug(*parts: str | Path) -> str:
    return "-".join(plain_name(Path(part).name.partition("@")[0]) for part in parts)
