"""`compare`: every two runs on the clips that both judged, from Python."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unreel.api.models import require_parser
from unreel.api.running import Run
from unreel.core.comparison import Comparisons
from unreel.core.registry import LazyImport
from unreel.protocols.protocol import Mode

if TYPE_CHECKING:  # what reads tables comes with an extra
    from unreel.evaluation import job


def compare(
    *runs: str | Path | Run,
    metrics: Sequence[str] = (),
    parser: Mode | None = None,
    judge: str | None = None,
) -> Comparisons:
    """Tell what the figures of every two runs differ by on the clips that both judged; nobody is asked.

    A run that was asked under several conditions is several. P-values are corrected for all differences
    that are told.

    Args:
        runs: folders or `s3://bucket/prefix` that `evaluate` or `unreel eval` wrote, or runs.
        metrics: figures of the scorecard, for example `["balanced", "caught"]`; those that the instrument
            declares where none is named.
        parser: how answers are read; as each run's recipe says where none is named.
        judge: model whose rulings `unreel score --judge` kept.

    Raises:
        InvalidSettingError: They were asked other instruments, or about other clips.
        MissingExtraError: What reads answers is not installed.
        UnknownNameError: No figure or parser has that name.
        UnreadableSourceError: A run or its benchmark cannot be read.
    """
    compare_runs = LazyImport("unreel.evaluation.comparing:compare_runs", "eval").load()
    find = LazyImport("unreel.api.run_job:find", "eval").load()
    kept: list[job.EvalRun] = [
        run._kept if isinstance(run, Run) else find(str(run))  # noqa: SLF001  one house
        for run in runs
    ]
    mode = None if parser is None else require_parser(parser)
    found: Comparisons = compare_runs(kept, metrics=metrics, parser=mode, judge=judge)
    return found
