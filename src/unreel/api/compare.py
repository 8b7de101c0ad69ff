"""`compare`: comparison of runs on the clips that both judged, from Python."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unreel.api.keyword_types import require_parser_name
from unreel.api.runs import Run
from unreel.core.comparison import Comparisons
from unreel.core.registry import LazyImport
from unreel.protocols.protocol import Mode

if TYPE_CHECKING:  # what reads tables comes with an extra
    from unreel.evaluation import run_job


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
        judge: Model whose stored rulings of `unreel score --judge` are used.

    Raises:
        InvalidSettingError: The runs have other protocols, or other clips.
        MissingExtraError: A required package is not installed.
        UnknownNameError: No metric or parser has that name.
        UnreadableSourceError: A run or its benchmark cannot be read.
    """
    compare_runs = LazyImport("unreel.evaluation.comparison:compare_runs", "eval").load()
    find = LazyImport("unreel.api.runs_job:open_stored_run", "eval").load()
    kept: list[run_job.EvalRun] = [
        run._kept if isinstance(run, Run) else find(str(run))  # noqa: SLF001  one house
        for run in runs
    ]
    mode = None if parser is None else require_parser_name(parser)
    found: Comparisons = compare_runs(kept, metrics=metrics, parser=mode, judge=judge)
    return found
