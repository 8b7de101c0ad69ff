"""Rows that are kept as columns come back as they were."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.drawn_rows import INSTRUMENTS, SHAPES, draw_rows
from unreel.core.clip import ClipId, Real
from unreel.core.judgement import Pair, build_question_subject
from unreel.evaluation.scored_columns import ScoredQuestionColumns
from unreel.protocols.protocol import ScoredQuestion, get_protocol


def _keep(rows: Sequence[ScoredQuestion[Any, Any]]) -> ScoredQuestionColumns:
    kept = ScoredQuestionColumns()
    for row in rows:
        kept.append(row)
    return kept


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("instrument", INSTRUMENTS)
def test_rows_of_every_instrument_come_back(instrument: str, shape: str) -> None:
    rows: list[ScoredQuestion[Any, Any]] = [
        ScoredQuestion(
            subject=row.subject,
            truth=row.truth,
            outcome=row.outcome,
            source=row.source,
            creator=row.creator,
            setting=row.setting,
            difficulty=row.difficulty,
        )
        for row in draw_rows(instrument, 40, **SHAPES[shape])
    ]
    kept = _keep(rows)
    assert [*kept] == rows
    assert (kept[-1], kept[3:5]) == (rows[-1], rows[3:5])
    with pytest.raises(IndexError):
        kept[len(rows)]


@pytest.mark.parametrize("shape", SHAPES)
def test_packed_rows_of_trace_are_scored_and_told_apart_as_they_were(shape: str) -> None:
    rows = draw_rows("trace", 300, **SHAPES[shape])
    rows = [replace(row, text_score=None) for row in rows]
    trace = get_protocol("trace")
    packed = ScoredQuestionColumns(trace.packed)
    for row in rows:
        packed.append(row)
    assert trace.score(packed, seed=1) == trace.score(rows, seed=1)
    same = [packed.truth_mark(at) == packed.truth_mark(0) for at in range(len(rows))]
    assert same == [row.truth == rows[0].truth for row in rows]


ids = st.one_of(
    st.text("0123456789abcdef", min_size=64, max_size=64), st.text(max_size=4), st.just("A" * 64)
)


@given(st.lists(st.one_of(st.tuples(ids), st.tuples(ids, ids)), max_size=6), st.text(max_size=5))
def test_whatever_stands_for_an_id_or_a_source_comes_back(
    shown: list[tuple[str, ...]], source: str
) -> None:
    subjects: list[ClipId | Pair] = [
        build_question_subject(*map(ClipId, dict.fromkeys(clips))) for clips in shown
    ]
    rows = [
        ScoredQuestion(subject=each, truth=Real(), outcome=None, source=source) for each in subjects
    ]
    assert [*_keep(rows)] == rows
