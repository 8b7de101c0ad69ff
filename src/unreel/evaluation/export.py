"""Export of a run as CSV, JSONL or Parquet, one row for each question, written as a stream."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Literal

from pydantic import TypeAdapter

from unreel.benchmarks.export.exported_question import format_truths_json
from unreel.benchmarks.questions import PlannedQuestion, UnreadableClip
from unreel.core.chunks import iter_chunks
from unreel.core.clip import Clip, Generated, Real
from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.output_files import OutputDirectory
from unreel.core.question import Condition, Instrument
from unreel.core.table_formats import iter_csv_lines
from unreel.core.verdict import Verdict, is_answer_correct
from unreel.evaluation.run_job import EvalRun
from unreel.evaluation.scoring import iter_questions_with_answers, parse_stored_answer
from unreel.protocols.protocol import Mode

RunFormat = Literal["csv", "jsonl", "parquet"]
Row = dict[str, Any]

_TEXT = "string"
COLUMNS: Mapping[str, str] = {
    "key": _TEXT,
    "name": _TEXT,
    "status": _TEXT,
    "reviewer": _TEXT,
    "protocol": _TEXT,
    "protocol_version": "int32",
    "clip": _TEXT,
    "second": _TEXT,
    "location": _TEXT,
    "second_location": _TEXT,
    "sampling": _TEXT,
    "audio": _TEXT,
    "watermark": _TEXT,
    "thinking": _TEXT,
    "prompt": _TEXT,
    "max_pixels": "int64",
    "marks": _TEXT,
    "label": _TEXT,
    "creator": _TEXT,
    "truth": _TEXT,
    "verdict": _TEXT,
    "correct": "bool",
    "text": _TEXT,
    "failure": _TEXT,
    "failure_detail": _TEXT,
    "attempt": "int32",
    "latency_us": "int64",
    "input_tokens": "int64",
    "output_tokens": "int64",
    "cost_usd": "float64",
    "answered_by": _TEXT,
}
"""Columns in order, with their Arrow types. `status` is answered, failed or not-asked; `label` is real
or generated, empty for a pair; `truth` and `verdict` are JSON, nested in JSONL and text elsewhere; `correct` is
empty without an answer that can be read."""
_NESTED = ("truth", "verdict")
_VERDICT: TypeAdapter[Verdict] = TypeAdapter(Verdict)
_LOOK = 512


def iter_question_rows(run: EvalRun, *, mode: Mode = "strict") -> Iterator[Row]:
    """Yield a row per question in benchmark order, unsent too; answers come in small batches."""
    reviewer = run.reviewer_name()
    for planned, answer in iter_questions_with_answers(run):
        if isinstance(planned, PlannedQuestion):
            yield _build_answer_row(planned, answer, reviewer=reviewer, mode=mode)
        elif planned.truths:  # without truths it is a clip of a pair, and no question was planned
            instrument = run.scope.instrument
            columns = _build_truth_columns(planned, instrument)
            columns |= _build_failure_columns(planned.failure)
            for condition in planned.conditions:
                yield _build_empty_row(instrument, condition, reviewer) | columns


def export_run(run: EvalRun, file: Path, *, form: RunFormat, mode: Mode = "strict") -> int:
    """Write the questions of `run` to a new file and return their number; an error leaves no file.

    Raise `UnreadableSourceError` if the file exists already.
    """
    if file.exists():
        raise UnreadableSourceError(str(file), "exists already", "Name a new file, or remove it")
    write = {"csv": _write_csv, "jsonl": _write_jsonl, "parquet": _write_parquet}[form]
    with OutputDirectory(file.parent).create(file.name) as into:
        return write(iter_question_rows(run, mode=mode), into)


def _build_answer_row(
    planned: PlannedQuestion[Clip], answer: Mapping[str, Any] | None, *, reviewer: str, mode: Mode
) -> Row:
    question = planned.question
    row = _build_empty_row(question.instrument, question.condition, reviewer)
    row |= _build_truth_columns(planned, question.instrument)
    row |= {
        "key": question.key(reviewer),
        "clip": planned.clips[0].id,
        "location": planned.clips[0].location,
    }
    if len(planned.clips) > 1:
        second = planned.clips[1]
        row |= {"second": second.id, "second_location": second.location}
    if answer is None:
        return row | {"status": "not-asked"}
    verdict = parse_stored_answer(planned, answer, mode=mode)
    if isinstance(verdict, Failure):
        row |= _build_failure_columns(verdict)
    else:
        label = Label.REAL if isinstance(planned.origins[0], Real) else Label.GENERATED
        row |= {
            "status": "answered",
            "verdict": _VERDICT.dump_python(verdict, mode="json"),
            "correct": is_answer_correct(verdict, planned.truths[0], label),
        }
    columns = ("text", "attempt", "latency_us", "input_tokens", "output_tokens", "cost_usd")
    row["answered_by"] = answer.get("answered_by")
    return row | {name: answer[name] for name in columns}


def _build_empty_row(instrument: Instrument, condition: Condition, reviewer: str) -> Row:
    empty: Row = dict.fromkeys(COLUMNS)
    protocol = {"protocol": instrument.protocol, "protocol_version": instrument.version}
    return empty | asdict(condition) | protocol | {"reviewer": reviewer}


def _build_truth_columns(
    planned: PlannedQuestion[Clip] | UnreadableClip, instrument: Instrument
) -> Row:
    origins = planned.origins
    creators = [origin.creator for origin in origins if isinstance(origin, Generated)]
    return {
        "name": planned.name,
        "label": ("generated" if creators else "real") if len(origins) == 1 else None,
        "creator": creators[0] if creators else None,
        "truth": json.loads(format_truths_json(instrument.protocol, planned.truths)),
    }


def _build_failure_columns(failure: Failure) -> Row:
    return {"status": "failed", "failure": failure.reason.value, "failure_detail": failure.detail}


def _write_jsonl(rows: Iterable[Row], into: IO[bytes]) -> int:
    n_rows = 0
    for row in rows:
        into.write((json.dumps(row, ensure_ascii=False) + "\n").encode())
        n_rows += 1
    return n_rows


def _write_csv(rows: Iterable[Row], into: IO[bytes]) -> int:
    n_lines = 0
    words = {True: "true", False: "false", None: ""}
    records = (
        {
            name: words[value] if value is None or isinstance(value, bool) else value
            for name, value in _flatten_nested_columns(row).items()
        }
        for row in rows
    )
    for line in iter_csv_lines(list(COLUMNS), records):
        into.write(line.encode())
        n_lines += 1
    return n_lines - 1  # without the header


def _write_parquet(rows: Iterable[Row], into: IO[bytes]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = [pa.field(name, pa.type_for_alias(kind)) for name, kind in COLUMNS.items()]
    schema = pa.schema(fields)
    n_rows = 0
    with pq.ParquetWriter(into, schema) as writer:
        for chunk in iter_chunks(map(_flatten_nested_columns, rows), _LOOK):
            writer.write_batch(pa.RecordBatch.from_pylist(chunk, schema=schema))
            n_rows += len(chunk)
    return n_rows


def _flatten_nested_columns(row: Row) -> Row:
    nested = {name: row[name] for name in _NESTED if row[name] is not None}
    return row | {name: json.dumps(value, ensure_ascii=False) for name, value in nested.items()}
