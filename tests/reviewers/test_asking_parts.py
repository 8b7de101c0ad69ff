"""The parts of asking well, each alone: pace, breaker, retries, reading, families."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.answer import Reply
from unreel.core.failure import Failure, FailureReason
from unreel.core.retry import RetryPolicy
from unreel.network.http_client import HttpReply
from unreel.reviewers.endpoint.budget import RequestBudget
from unreel.reviewers.endpoint.client import ModelServerClient
from unreel.reviewers.endpoint.load_control import (
    LONGEST_PAUSE_S,
    STREAK,
    CircuitBreaker,
    ConcurrencyLimiter,
    RequestPermit,
)
from unreel.reviewers.endpoint.model_families import get_model_family, match_model_family
from unreel.reviewers.endpoint.transport import RequestFailure, parse_chat_response

NOW = datetime(2026, 11, 1, 12, 0, 0, tzinfo=UTC)
DOWN = Failure(FailureReason.SERVER_ERROR, "status 500: oops")


def completion(**message: Any) -> bytes:
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()


def tripped(*, outage_s: float = 60) -> CircuitBreaker:
    breaker = CircuitBreaker(outage_s=outage_s)
    for _ in range(STREAK):
        breaker.record_failure(DOWN, now_s=0, probe=False, wait_s=0)
    return breaker


def test_a_streak_of_failures_opens_the_breaker_and_one_answer_closes_it() -> None:
    breaker = CircuitBreaker(outage_s=60)
    for _ in range(STREAK - 1):
        breaker.record_failure(DOWN, now_s=0, probe=False, wait_s=0)
    assert breaker.check(0) == RequestPermit(probe=False)
    breaker.record_failure(DOWN, now_s=0, probe=False, wait_s=0)
    assert isinstance(breaker.check(0), float)
    breaker.record_answer()
    assert breaker.check(0) == RequestPermit(probe=False)


def test_one_probe_at_a_time_looks_whether_the_server_is_back() -> None:
    breaker = tripped()
    assert breaker.check(5) == RequestPermit(probe=True)
    assert isinstance(breaker.check(5), float)
    breaker.record_failure(DOWN, now_s=5, probe=True, wait_s=0)
    assert isinstance(breaker.check(5.5), float)
    assert breaker.check(5 + LONGEST_PAUSE_S) == RequestPermit(probe=True)


def test_an_outage_that_lasts_ends_questions_with_its_cause() -> None:
    breaker = tripped(outage_s=3)
    breaker.check(5)
    gate = breaker.check(5)
    assert isinstance(gate, Failure)
    assert gate.reason is FailureReason.SERVER_ERROR
    assert "oops" in gate.detail


@pytest.mark.parametrize(
    ("status", "body", "reason", "final"),
    [
        (200, b"", FailureReason.MALFORMED_REPLY, False),
        (200, b"[]", FailureReason.MALFORMED_REPLY, False),
        (200, b'{"choices": []}', FailureReason.MALFORMED_REPLY, False),
        (200, b'{"choices": [{"text": "0"}]}', FailureReason.MALFORMED_REPLY, False),
        (200, b"[" * 100_000, FailureReason.MALFORMED_REPLY, False),
        (200, b"\xff\xfe{", FailureReason.MALFORMED_REPLY, False),
        (200, completion(content=["0"]), FailureReason.MALFORMED_REPLY, False),
        (200, completion(content=" \n"), FailureReason.EMPTY_REPLY, False),
        (200, completion(content="", refusal="No."), FailureReason.REFUSED, True),
        (200, b'{"error": {"code": 429, "message": "x"}}', FailureReason.RATE_LIMITED, False),
        (200, b'{"error": {"code": "odd"}}', FailureReason.MALFORMED_REPLY, False),
        (429, b'{"error": {"code": "insufficient_quota"}}', FailureReason.RATE_LIMITED, True),
        (408, b"", FailureReason.SERVER_ERROR, False),
        (529, b"overloaded", FailureReason.SERVER_ERROR, False),
        (404, b'{"error": "no such model"}', FailureReason.REQUEST_REJECTED, True),
    ],
)
def test_what_is_no_reply_is_named(
    status: int, body: bytes, reason: FailureReason, *, final: bool
) -> None:
    outcome = parse_chat_response(HttpReply(status, body), now=NOW)
    assert isinstance(outcome, RequestFailure)
    assert (outcome.failure.reason, outcome.final) == (reason, final)
    assert len(outcome.failure.detail) < 300


ODD_NUMBERS = [
    *("-1", "9223372036854775808", "1" + "0" * 4000, "1.5", "1e3", "1e999", "-1e999", "NaN"),
    *("Infinity", "true", '"5"', "null", "[5]", '{"a": 5}', "1000000001"),
]


@pytest.mark.parametrize("number", [*ODD_NUMBERS, "1" + "0" * 5000], ids=lambda text: text[:20])
def test_an_odd_number_anywhere_costs_no_more_than_the_answer(number: str) -> None:
    for body in (
        f'{{"choices": {number}}}',
        f'{{"choices": [{number}]}}',
        f'{{"choices": [{{"message": {{"content": ""}}, "finish_reason": {number}}}]}}',
        f'{{"error": {{"code": {number}, "message": {number}}}}}',
    ):
        outcome = parse_chat_response(HttpReply(200, body.encode()), now=NOW)
        assert isinstance(outcome, RequestFailure)
        assert len(outcome.failure.detail) < 300


class Odd:
    """A transport whose replies no reader foresaw."""

    async def send(self, body: bytes, *, key: str) -> HttpReply:
        odd: Any = None
        return HttpReply(200, odd)

    async def close(self) -> None:
        """Nothing is open."""


def test_a_reply_that_breaks_its_reader_is_a_failure_of_that_question() -> None:
    async def ask() -> Reply | Failure:
        asker = ModelServerClient(
            Odd(),
            limiter=ConcurrencyLimiter(max_connections=1),
            retry_policy=RetryPolicy(deadline_s=0.2, attempt_s=0.1, backoff_s=0.01, outage_s=0.1),
            budget=RequestBudget(),
            redact=str,
            seed=0,
        )
        return await asker.ask(b"{}", key="k")

    outcome = asyncio.run(ask())
    assert isinstance(outcome, Failure)
    assert outcome.reason is FailureReason.MALFORMED_REPLY
    assert outcome.detail.startswith("the reply cannot be read (TypeError)")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", "qwen2.5-vl"),
        ("Qwen/Qwen3-VL-8B-Instruct", "qwen3-vl"),
        ("DAMO-NLP-SG/VideoLLaMA3-7B", "videollama3"),
        ("gpt-4.1", "openai"),
        ("gpt-5.2", "openai-switch"),
        ("gpt-5", "openai-reasoning"),
        ("gpt-5.1-codex", "openai-reasoning"),
        ("Qwen/Qwen3-VL-8B-Thinking", "qwen3-vl-thinking"),
        ("qwen3-vl-plus-2025-12-19", "qwen3-vl-hosted"),
        ("o3", "openai-reasoning"),
        ("google/gemini-2.5-pro", "gemini"),
        ("tiny", "unknown"),
    ],
)
def test_a_model_is_known_by_its_name(model: str, name: str) -> None:
    assert match_model_family(model).name == name


@pytest.mark.parametrize(
    ("size", "seen"),
    [((1280, 720), (1288, 728)), ((30, 20), (84, 56)), ((8000, 6000), (4116, 3080))],
    ids=["to multiples", "grown", "shrunk"],
)
def test_qwen_boxes_live_in_the_resized_frame(size: tuple[int, int], seen: tuple[int, int]) -> None:
    assert get_model_family("qwen2.5-vl").box_space(*size) == f"model-input {seen[0]}x{seen[1]}"


@given(
    status=st.integers(100, 599),
    body=st.binary(max_size=60)
    | st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(
                    ["choices", "message", "content", "refusal", "error", "code", "usage"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ).map(lambda value: json.dumps(value).encode()),
    header=st.none() | st.text(max_size=12),
)
def test_no_bytes_of_a_server_raise(status: int, body: bytes, header: str | None) -> None:
    outcome = parse_chat_response(HttpReply(status, body, header), now=NOW)
    assert isinstance(outcome, Reply | RequestFailure)
    repr(outcome).encode()
