"""What an eval would ask, foreseen: the same questions, nobody asked, nothing kept."""

import os
from pathlib import Path

import pytest

from synthesise import ClipRecipe, synthesise

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from unreel.evaluation.forecast import forecast_eval, open_temporary_clip_table
from unreel.evaluation.run_job import evaluate


def test_what_is_foreseen_is_what_is_asked(start, server) -> None:
    run = start(model=server.model, condition=[{"sampling": "uniform-2"}, {"audio": "on"}])
    with open_temporary_clip_table() as aside:
        found = forecast_eval(run, aside=aside)
    assert server.asked == []
    assert not run.place.path.exists()
    assert (found.n_clips, found.n_questions, found.n_due) == (8, 12, 12)
    assert found.bill is not None
    assert found.bill.input_tokens is None  # nobody has a formula for sound
    asked = evaluate(run).answers
    assert asked.done + asked.failed == found.n_due


def test_clips_that_several_runs_share_are_looked_at_once(start, tmp_path: Path) -> None:
    film = tmp_path / "a.mp4"
    film.write_bytes(synthesise(ClipRecipe(n_frames=12)))
    table = tmp_path / "list.csv"
    table.write_text("file,label\na.mp4,real\n", encoding="utf-8")
    with open_temporary_clip_table() as aside:
        assert forecast_eval(start(benchmark=table), aside=aside).n_due == 1
        was = film.stat()
        film.write_bytes(b"\0" * was.st_size)
        os.utime(film, ns=(was.st_atime_ns, was.st_mtime_ns))
        second = start(benchmark=table, model="always-real", out="second")
        assert forecast_eval(second, aside=aside).n_due == 1
    with open_temporary_clip_table() as aside:
        assert sum(forecast_eval(second, aside=aside).unreadable.values()) == 1
