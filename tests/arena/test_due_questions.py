"""A season asks again what failed for a reason that is retried, and never what was answered."""

from pathlib import Path

import pytest

pytest.importorskip("lance", reason="needs the extra `eval`")

from arena.seasons import Stadium, write_benchmark
from unreel.arena.run.job import DRIVER, forecast_season
from unreel.core.errors import UnreadableSourceError
from unreel.engine.writer_lock import build_writer_lock

ANSWERS = '{"name": "real-0", "text": "<answer>1</answer>"}\n'
"""Recorded answers: one of the four questions of the season has an answer."""


@pytest.fixture
def stadium(tmp_path: Path) -> Stadium:
    write_benchmark(tmp_path / "bench", n_scenes=2)
    (tmp_path / "said.jsonl").write_text(ANSWERS, encoding="utf-8")
    return Stadium(
        tmp_path,
        creators=[{"name": "Sora", "kind": "frozen"}],
        reviewers=[{"model": "recorded", "recorded": "said.jsonl", "title": "Ann"}],
        head={"floors": False},
    )


def count_due(stadium: Stadium, **given: frozenset[str]) -> int:
    """Return the number of questions that the season would ask now."""
    (reviewer,) = forecast_season(stadium.job(**given)).reviewers
    return reviewer.n_due


def test_failures_are_due_again_only_for_the_reasons_that_are_retried(stadium: Stadium) -> None:
    (turn,) = stadium.play().reviewers
    assert (turn.done, dict(turn.failures)) == (1, {"not-recorded": 3})
    assert count_due(stadium) == 0
    assert count_due(stadium, retry_failed=frozenset({"refused"})) == 0
    assert count_due(stadium, retry_failed=frozenset({"not-recorded"})) == 3


def test_a_second_driver_of_a_season_is_refused_before_it_writes(stadium: Stadium) -> None:
    job = stadium.job()
    with (
        build_writer_lock(job.folder.place / DRIVER),
        pytest.raises(UnreadableSourceError, match="another run writes it"),
    ):
        stadium.play()
    assert [file.name for file in job.folder.path.rglob("*") if file.is_file()] == ["season.lock"]
