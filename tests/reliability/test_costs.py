"""A provider counts what it really received: over restarts, kills and a full disk the cap on cost holds."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from reliability.trial import Chat, Trial
from unreel.evaluation.run_job import sum_run_cost_usd

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
