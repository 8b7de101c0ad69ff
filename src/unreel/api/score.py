"""`score`: scoring of existing answers against a benchmark, from Python."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unreel.api.keyword_types import require_parser_name
from unreel.benchmarks.imported_answers import (
    JoinedAnswers,
    ScorableRows,
    build_scorable_rows,
    join_answers_with_entries,
    require_scorable_rows,
)
from unreel.benchmarks.loader import Benchmark, open_benchmark
from unreel.benchmarks.localisation.predictions import find_prediction_box_space
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.estimate import Scorecard
from unreel.core.failure import Failure
from unreel.protocols.protocol import Mode, Protocol, Subject
from unreel.protocols.protocol import get_protocol as find_protocol


def score(
    answers: str | Path | Mapping[str, str | Failure],
    *,
    benchmark: str | Path | Benchmark,
    protocol: str,
    prompt: str = "paper",
    parser: Mode = "strict",
    box_space: str | None = None,
    split: str | None = None,
    seed: int = 0,
    allow_outside: bool = False,
) -> Scorecard:
    """Score `answers` against the ground truth of `benchmark`; no question is sent.

    A clip without an answer is not counted; a warning gives their number.

    Args:
        answers: A JSONL, CSV, TSV or Parquet file with `name` and `text` or `failure`, a JSON or text
            file of predicted segments, or the texts by the names of the clips; a pair is named
            `FIRST | SECOND`, in the order shown.
        benchmark: Folder or table of clips with their ground truth, or the result of
            `open_benchmark`.
        protocol: Protocol of the answers: `trace`, `realism`, `reality`, `preference` or `locate`.
        prompt: Prompt variant of the answers.
        parser: `strict` reads the requested format, `lenient` also its common variations.
        box_space: Coordinates of boxes, for example `pixel`; `trace` and `locate` need it.
        split: Score only this split of the benchmark.
        seed: Seed of the intervals.
        allow_outside: Let a table name files outside its folder; only for your own tables.

    Raises:
        UnreadableSourceError: The answers or the benchmark cannot be read, or do not match.
        InvalidSettingError: A setting is missing.
        UnknownNameError: No protocol, prompt, parser or split has that name.
    """
    instrument = find_protocol(protocol)
    instrument.prompt(prompt)
    if box_space is None and isinstance(answers, str | Path):
        box_space = find_prediction_box_space(Path(answers))
    if instrument.needs_box_space and box_space is None:
        raise InvalidSettingError(
            "box_space",
            f"{protocol} needs it",
            "Name the unit of the boxes, for example box_space='pixel'",
        )
    opened = benchmark
    if not isinstance(opened, Benchmark):
        opened = open_benchmark(Path(opened), outside=allow_outside)
    joined = _join_answers_to_benchmark(opened, answers, instrument).in_split(split)
    scorable = build_scorable_rows(
        joined, instrument, mode=require_parser_name(parser), prompt=prompt, space=box_space
    )
    answers_name = "answers" if isinstance(answers, Mapping) else str(answers)
    source = str(opened.root if isinstance(benchmark, Benchmark) else benchmark)
    require_scorable_rows(scorable, joined, instrument, answers=answers_name, benchmark=source)
    _warn_missing_answers(joined, scorable, instrument.subject)
    return instrument.score(scorable.rows, seed=seed)


def _join_answers_to_benchmark(
    benchmark: Benchmark,
    answers: str | Path | Mapping[str, str | Failure],
    protocol: Protocol[Any, Any],
) -> JoinedAnswers:
    subject, name = protocol.subject, protocol.instrument.protocol
    if isinstance(answers, Mapping):
        source, joined = "answers", join_answers_with_entries(benchmark, answers, subject)
    elif Path(answers).is_dir():
        raise UnreadableSourceError(
            str(answers),
            "a folder is not a file of answers",
            "Name a file; a run is scored by open_run(FOLDER).score()",
        )
    else:
        source, joined = (
            str(answers),
            join_answers_with_entries(benchmark, Path(answers), subject, protocol=name),
        )
    if joined.unknown:
        first, n = joined.unknown[0], len(joined.unknown)
        raise UnreadableSourceError(
            source,
            f"{n} of its names are none of the benchmark's, the first is {first!r}",
            "Use the names of its entries",
        )
    return joined


def _warn_missing_answers(joined: JoinedAnswers, scorable: ScorableRows, subject: Subject) -> None:
    unusable = (*joined.rejected, *scorable.without_truth)
    warning_parts = [
        f"{len(scorable.not_asked)} of {len(joined.pairs)} {subject}s have no answer"
        if scorable.not_asked
        else "",
        f"{len(unusable)} rows cannot be used, the first is {unusable[0]}" if unusable else "",
    ]
    if any(warning_parts):
        warnings.warn("; ".join(filter(None, warning_parts)), UserWarning, stacklevel=3)
