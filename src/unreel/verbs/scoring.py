"""`score`: answers that are there already, against a benchmark."""

from collections.abc import Mapping
from pathlib import Path

from unreel.benchmarks.answers import join_answers
from unreel.benchmarks.opening import open_benchmark
from unreel.benchmarks.scoring import build_rows
from unreel.core.estimate import Scorecard
from unreel.core.failure import Failure
from unreel.protocols.protocol import Mode
from unreel.protocols.protocol import protocol as find_protocol


def score(  # noqa: PLR0913  what `unreel score` takes
    answers: str | Path | Mapping[str, str | Failure],
    *,
    benchmark: str | Path,
    protocol: str,
    prompt: str = "paper",
    parser: Mode = "strict",
    box_space: str | None = None,
    seed: int = 0,
) -> Scorecard:
    """Score `answers` against the truth of `benchmark`; nobody is asked.

    Args:
        answers: a JSONL, CSV or Parquet file with `name` and `text` or `failure`, or the texts by
            the names of the clips.
        benchmark: folder or table of clips with their truth.
        protocol: the instrument that the answers were asked with.
        prompt: the prompt variant that was asked.
        parser: read the form that was asked for, or (`lenient`) also its usual variations.
        box_space: what boxes count in, for example `pixel`; `trace` needs it.
        seed: of the intervals.

    Raises:
        UnreadableSourceError: The answers or the benchmark cannot be read.
        InvalidSettingError: A setting is missing or unknown.
    """
    instrument = find_protocol(protocol)
    instrument.prompt(prompt)
    opened = open_benchmark(Path(benchmark))
    given = answers if isinstance(answers, Mapping) else Path(answers)
    joined = join_answers(opened, given)
    rows = build_rows(joined, instrument, mode=parser, prompt=prompt, space=box_space).rows
    return instrument.score(rows, seed=seed)
