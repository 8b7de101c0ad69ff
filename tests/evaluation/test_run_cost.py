"""A cap on cost holds for a run, over all its calls, and every token that was paid for is counted."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from chat import Reply, refuses, says, serve_chat
from unreel.core.errors import MachineError
from unreel.engine.progress import JobCallbacks
from unreel.evaluation.run_job import evaluate
from unreel.report.boards.entrant_metrics import sum_answer_cost
from unreel.report.entrants import read_report_entrants

PRICES = """
[models."compatible/tiny"]
input_usd_per_million = 100
output_usd_per_million = 100
"""
ANSWER_USD = 0.011
"""100 tokens in, 10 out."""


@dataclass
class PaidServer:
    """A chat server that counts what it would charge."""

    reply: Callable[[], Reply] = lambda: says("<answer>0</answer>")
    port: int = 0
    charged_usd: float = 0.0
    asked: list[str] = field(default_factory=list)

    def take(self, _body: bytes, headers: Message) -> Reply:
        status, document = self.reply()
        self.asked.append(headers["idempotency-key"])
        if status == 200:
            self.charged_usd += ANSWER_USD
        return status, document


@pytest.fixture
def paid(start: Any, tmp_path: Path) -> Iterator[tuple[PaidServer, Callable[..., Any]]]:
    """The server, and what makes a run that asks it for a known price."""
    (tmp_path / "prices.toml").write_text(PRICES, encoding="utf-8")
    state = PaidServer()

    def begin(**settings: Any) -> Any:
        return start(
            model=f"compatible/tiny@http://127.0.0.1:{state.port}/v1",
            prices=str(tmp_path / "prices.toml"),
            **{"max_tokens": 10, "max_connections": 1, **settings},
        )

    with serve_chat(state.take) as state.port:
        yield state, begin


def rows_of(run: Any) -> list[dict[str, Any]]:
    return list(run.answers.rows())


def stored_usd(run: Any) -> float:
    return sum(row["cost_usd"] or 0.0 for row in rows_of(run))


def empty_reply(ending: str = "length") -> Reply:
    status, document = says("")
    choice = {**document["choices"][0], "finish_reason": ending}
    return status, {**document, "choices": [choice]}


def test_a_cap_counts_what_earlier_calls_spent(paid: Any) -> None:
    server, begin = paid
    n_asked = []
    for _ in range(4):
        evaluate(begin(max_cost_usd=0.1))
        n_asked.append(len(server.asked))
    assert 1 <= n_asked[0] < 8
    assert n_asked == [n_asked[0]] * 4
    assert server.charged_usd == pytest.approx(stored_usd(begin()))
    assert server.charged_usd <= 0.1


def test_failures_count_towards_the_cap(paid: Any) -> None:
    server, begin = paid
    server.reply = empty_reply
    for _ in range(4):
        evaluate(begin(max_cost_usd=0.1), retry_failed={"empty-reply"})
    assert server.charged_usd == pytest.approx(stored_usd(begin()))
    assert server.charged_usd <= 0.1
    assert len(server.asked) > 1


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 0, "completion_tokens": 0}])
def test_a_server_that_reports_no_usage_stops_at_the_cap(paid: Any, usage: Any) -> None:
    server, begin = paid
    server.reply = lambda: (200, {**says("<answer>0</answer>")[1], "usage": usage})
    notes: list[str] = []
    run = begin(max_cost_usd=0.1)
    outcome = evaluate(run, callbacks=JobCallbacks(on_note=notes.append))
    assert 1 <= len(server.asked) == outcome.answers.done < 8
    assert len([note for note in notes if "no token usage" in note]) == 1
    answered = [row for row in rows_of(run) if row["text"] is not None]
    assert all(row["usage_estimated"] and row["output_tokens"] == 10 for row in answered)
    assert server.charged_usd <= stored_usd(run) <= 0.1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [(empty_reply, "empty-reply"), (lambda: empty_reply("content_filter"), "refused")],
)
def test_a_paid_failure_keeps_its_tokens_and_cost(paid: Any, reply: Any, reason: str) -> None:
    server, begin = paid
    server.reply = reply
    run = begin(limit=2)
    totals: dict[str, float] = {}
    evaluate(
        run, callbacks=JobCallbacks(on_step=lambda _part, progress: totals.update(progress.totals))
    )
    for row in rows_of(run):
        assert (row["failure_reason"], row["input_tokens"], row["output_tokens"]) == (
            reason,
            100,
            10,
        )
        assert row["cost_usd"] == pytest.approx(ANSWER_USD)
    assert totals["cost_usd"] == pytest.approx(2 * ANSWER_USD)
    (entrant,) = read_report_entrants(run)
    assert sum_answer_cost(entrant).cost_usd == pytest.approx(2 * ANSWER_USD)


def test_a_reply_that_is_too_long_is_paid_for_by_estimate(paid: Any) -> None:
    server, begin = paid
    server.reply = lambda: says("x" * (3 * 2**20))
    run = begin(limit=1, deadline_s=2)
    evaluate(run)
    (row,) = rows_of(run)
    assert row["failure_reason"] == "reply-too-large"
    assert row["usage_estimated"]
    assert row["cost_usd"] >= server.charged_usd > 0


def test_a_question_that_was_paid_for_is_not_called_not_asked(paid: Any) -> None:
    server, begin = paid
    server.reply = lambda: empty_reply("stop")  # asked again until the money is spent
    run = begin(limit=1, max_cost_usd=0.07)
    evaluate(run)
    (row,) = rows_of(run)
    assert row["failure_reason"] == "empty-reply"
    assert "USD are spent" in row["failure_detail"]
    assert row["cost_usd"] == pytest.approx(server.charged_usd)
    assert 1 < len(server.asked) < 8


def test_a_request_whose_reply_was_lost_stays_counted(paid: Any) -> None:
    server, begin = paid
    run = begin(max_cost_usd=0.1, limit=3)
    server.reply = lambda: refuses(401, "no")
    with pytest.raises(MachineError):
        evaluate(run)
    log = run.ledgers / "answers.spending"
    log.write_text("0.099\n0.0005", encoding="utf-8")  # the last line is torn
    server.reply = lambda: says("<answer>0</answer>")
    n_before = len(server.asked)
    assert evaluate(run).answers.failures == {"budget-spent": 3}
    assert len(server.asked) == n_before
