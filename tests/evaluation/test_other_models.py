"""A response that names another model than the requested one is stored, counted and shown."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra eval: pip install 'unreel[eval]'")

from unreel.evaluation.export import iter_question_rows
from unreel.evaluation.run_job import evaluate
from unreel.evaluation.scoring import score_run
from unreel.report.site import write_report

DATED = "tiny-2026-01-01"
HOSTILE = "<script>x</script>\x1b[31m\n# red"


@pytest.mark.parametrize("named", ["tiny", "", None, 7, ["tiny"]])
def test_the_requested_model_and_no_name_are_not_counted(
    start: Callable[..., Any], server: Any, named: object
) -> None:
    server.answering = named
    run = start(model=server.model, limit=2)
    evaluate(run)
    assert [row["answered_by"] for row in run.answers.rows()] == [None, None]
    (score,) = score_run(run)
    assert score.scorecard.answered_by == {}
    assert "another model" not in str(score.scorecard)


def test_another_model_is_stored_with_its_answers_counted_and_shown(
    start: Callable[..., Any], server: Any, tmp_path: Path, typed: Callable[..., Any]
) -> None:
    server.answering = DATED
    run = start(model=server.model, limit=2)
    evaluate(run)
    assert [row["answered_by"] for row in run.answers.rows()] == [DATED, DATED]
    assert [row["answered_by"] for row in iter_question_rows(run)] == [DATED, DATED]
    (score,) = score_run(run)
    assert score.scorecard.answered_by == {DATED: 2}
    assert f"answered by another model: 2 {DATED}" in str(score.scorecard)
    assert DATED in score.scorecard._repr_html_()
    assert f"answered by another model: 2 {DATED}" in typed("score", run.place.uri).err
    page = write_report([run], tmp_path / "report").page.read_text()
    assert "2 answers came from a model other than the requested one" in page
    assert DATED in page


def test_a_hostile_name_is_shown_without_effect(
    start: Callable[..., Any], server: Any, tmp_path: Path, typed: Callable[..., Any]
) -> None:
    server.answering = HOSTILE + "x" * 10_000
    run = start(model=server.model, limit=1)
    evaluate(run)
    (row,) = run.answers.rows()
    assert len(row["answered_by"]) <= 200
    (score,) = score_run(run)
    assert "<script>x" not in score.scorecard._repr_html_()
    assert "\x1b" not in typed("score", run.place.uri).err
    page = write_report([run], tmp_path / "report").page.read_text()
    assert "<script>x" not in page
    assert "\x1b" not in page
