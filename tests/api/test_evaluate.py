"""`evaluate` and `open_run`: a benchmark before a reviewer, kept, scored and looked at."""

import asyncio
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

import unreel
from unreel.api import progress_bar
from unreel.api.progress_bar import show_progress
from unreel.core.answer import Reply
from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.estimate import Estimate
from unreel.core.failure import FailureReason
from unreel.core.question import Condition

Evaluate = Callable[..., unreel.Run]


@pytest.fixture
def evaluate(films: Path, tmp_path: Path) -> Evaluate:
    """Evaluates the films in a folder of the test."""

    def run(**asked: Any) -> unreel.Run:
        given = {"protocol": "reality", "out": tmp_path / "run", "trusted": True, **asked}
        return unreel.evaluate(films, **given)

    return run


def test_a_floor_is_evaluated_and_scored_with_intervals(evaluate: Evaluate, tmp_path: Path) -> None:
    run = evaluate(model="always-generated")
    card = run.score()
    assert (card.n_questions, card.n_answered) == (4, 4)
    assert (card["real-accuracy"].value, card["fake-accuracy"].value) == (0.0, 100.0)
    pooled = card["pooled"]
    assert isinstance(pooled, Estimate)
    assert pooled.low < pooled.value < pooled.high
    assert str(pooled) in str(card)
    assert (run.place, run.reviewer) == (str(tmp_path / "run"), "always-generated")
    assert run.conditions == (Condition(),)
    assert repr(run).startswith(f"<Run {tmp_path / 'run'}: always-generated on ")


def test_a_terminal_shows_how_far_an_evaluation_is_and_nothing_else_does(
    evaluate: Evaluate,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    evaluate(model="coin")
    assert capfd.readouterr() == ("", "")
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80)
    monkeypatch.setattr(progress_bar, "show_progress", lambda: show_progress(console))
    evaluate(model="always-real", out=tmp_path / "second")
    assert "answers: " in screen.getvalue()
    assert " of 4" in screen.getvalue()
    assert "\u2501" in screen.getvalue()  # the bar
    steps: list[str] = []
    shown = screen.getvalue()
    evaluate(
        model="coin", out=tmp_path / "third", on_progress=lambda part, _progress: steps.append(part)
    )
    assert {"clips", "answers"} == {*steps}
    assert screen.getvalue() == shown


def test_an_object_in_memory_is_evaluated_and_resumed_without_asking_again(
    evaluate: Evaluate, spy: Any
) -> None:
    first = evaluate(model=spy)
    assert (len(spy.sheets), spy.closed) == (4, 0)
    assert {sheet.instrument.protocol for sheet in spy.sheets} == {"reality"}
    again = evaluate(model=spy)
    assert len(spy.sheets) == 4
    assert again.score() == first.score() == unreel.open_run(first.place).score()
    assert first.reviewer == "spy"


def test_an_object_that_raises_leaves_a_row_with_the_reason(
    evaluate: Evaluate, make_spy: Any
) -> None:
    def act(sheet: Any) -> Reply:
        if len(spy.sheets) == 1:
            msg = "once"
            raise ValueError(msg)
        return Reply(text="<answer>1</answer>")

    spy = make_spy(act=act)
    run = evaluate(model=spy, max_connections=1)
    card = run.score()
    assert (card.n_answered, card.failures) == (3, {FailureReason.STAGE_FAILED.value: 1})
    (lost,) = [row for row in run.rows() if row["failure"]]
    assert lost["failure_detail"] == "ValueError: once"
    assert "failed: 1 stage-failed" in str(card)
    assert evaluate(model=spy).score().n_answered == 3
    assert evaluate(model=spy, retry_failed=True).score().n_answered == 4


def test_rows_are_what_export_writes_and_a_data_frame_holds_them(evaluate: Evaluate) -> None:
    run = evaluate(model="always-real")
    rows = list(run.rows())
    assert [row["verdict"]["label"] for row in rows] == ["real"] * 4
    frame = run.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["name"]) == [row["name"] for row in rows]
    assert frame.groupby("label").size().to_dict() == {"generated": 2, "real": 2}
    assert frame.groupby("label").correct.mean().to_dict() == {"generated": 0, "real": 1}


def test_a_report_is_a_page_to_open(evaluate: Evaluate, tmp_path: Path) -> None:
    page = evaluate(model="coin").report(tmp_path / "report")
    assert page.is_file()
    assert page.is_relative_to(tmp_path / "report")
    assert "<html" in page.read_text(encoding="utf-8")


def test_by_default_a_run_lies_where_the_command_keeps_it(
    films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = unreel.evaluate(films, model="coin", protocol="reality", limit=1, trusted=True)
    assert run.place == f"runs/coin-reality-{films.name}"
    assert unreel.open_run(run.place).score().n_answered == 1


def test_it_works_inside_a_running_event_loop(evaluate: Evaluate, spy: Any, tmp_path: Path) -> None:
    async def notebook() -> unreel.Scorecard:
        run = evaluate(model=spy)
        run.report(tmp_path / "report")
        return unreel.open_run(run.place).score()

    assert asyncio.run(notebook()).n_answered == 4


@pytest.mark.parametrize(
    ("asked", "kind", "words"),
    [
        ({"model": "coinn"}, InvalidSettingError, "Did you mean 'coin'"),
        (
            {"model": object()},
            InvalidSettingError,
            "is not a Reviewer, missing attributes: name, wants",
        ),
        ({"protocol": "realty"}, UnknownNameError, "Did you mean 'reality'"),
        ({"conditions": [{"samplin": "x"}]}, InvalidSettingError, "Did you mean 'sampling'"),
        ({"limt": 1}, InvalidSettingError, "Did you mean 'limit'"),
        ({"engine": "dask"}, UnknownNameError, "Known: local, ray"),
    ],
)
def test_what_nobody_can_do_is_refused_in_words(
    asked: dict[str, Any], kind: type[Exception], words: str, evaluate: Evaluate
) -> None:
    with pytest.raises(kind, match=words):
        evaluate(**{"model": "coin", **asked})
