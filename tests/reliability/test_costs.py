"""A provider counts what it really received: over restarts, kills and a full disk the cap on cost holds."""

import logging
import random
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from chaos.clips import make_clips
from reliability.disk import fill, mount
from reliability.trial import AT_ONCE, Chat, Trial
from unreel.engine.location import StorageLocation
from unreel.evaluation.run_cost import sum_run_cost_usd

logger = logging.getLogger(__name__)
PRICES = '[models."compatible/tiny"]\ninput_usd_per_million = 1\noutput_usd_per_million = 5\n'
MAX_TOKENS = 2048
ANSWER_USD = (100 + 5 * MAX_TOKENS) / 1e6
"""All answers are as long as they may be; a request is estimated at a little more, for its longer prompt."""

Cap = Callable[[float], Trial]


@pytest.fixture
def capped(trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cap:
    """Makes the trial with a cap on its cost."""
    monkeypatch.setattr(trial.chat, "n_written", MAX_TOKENS)
    prices = tmp_path / "prices.toml"
    prices.write_text(PRICES, encoding="utf-8")

    def make(cap_usd: float) -> Trial:
        options = ("--prices", str(prices), "--max-cost-usd", str(cap_usd))
        return replace(trial, options=options)

    return make


def kill(trial: Trial, n_answers: int) -> None:
    """Start the command, answer a few questions, and kill it with others under way."""
    started = trial.start_and_ask(n_answers)
    started.process.kill()
    started.process.wait()
    trial.chat.release()


def received_usd(chat: Chat) -> float:
    return len(chat.asked) * ANSWER_USD


def counted_usd(trial: Trial) -> float:
    return float(sum_run_cost_usd(trial.table("answers"), Path(trial.place.uri)) or Decimal())


def test_a_cap_holds_over_a_kill_and_restarts(capped: Cap) -> None:
    trial = capped(8.5 * ANSWER_USD)
    kill(trial, 3)
    for _ in range(2):
        trial.run()
    n_asked = len(trial.chat.asked)
    assert 4 <= n_asked <= 8
    assert received_usd(trial.chat) <= counted_usd(trial) <= 8.5 * ANSWER_USD
    assert {row["failure_reason"] for row in trial.rows().values()} == {None, "budget-spent"}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_cap_holds_over_restarts_kills_and_a_full_disk(
    capped: Cap, disk: Path, tmp_path: Path
) -> None:
    cap_usd = 160.5 * ANSWER_USD
    assert mount("-o", "remount,size=16m", str(disk))
    bench = tmp_path / "many"
    bench.mkdir()
    trial = replace(
        capped(cap_usd), benchmark=make_clips(bench, 200), place=StorageLocation(str(disk / "run"))
    )
    draw = random.Random(0)
    for _ in range(15):
        kill(trial, draw.randrange(1, 7))
    started = trial.start_and_ask(6)
    ballast = fill(disk)
    trial.chat.release()
    full = started.end()
    assert (full.status, "Make room" in full.stderr) == (2, True), full.stderr
    n_asked = len(trial.chat.asked)
    assert trial.run().status == 2
    assert len(trial.chat.asked) == n_asked, "a full disk is noticed before anything is asked"
    ballast.unlink()
    for _ in range(4):
        trial.run()
    rows = trial.rows().values()
    n_kept = sum(row["text"] is not None for row in rows)
    logger.info(
        "%d requests, %.4f USD received, %.4f USD counted, cap %.4f USD, %d answers kept, %d lost",
        len(trial.chat.asked),
        received_usd(trial.chat),
        counted_usd(trial),
        cap_usd,
        n_kept,
        len(trial.chat.asked) - n_kept,
    )
    assert received_usd(trial.chat) <= cap_usd + AT_ONCE * ANSWER_USD
    assert received_usd(trial.chat) <= counted_usd(trial) <= cap_usd
