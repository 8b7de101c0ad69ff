"""The parts of asking well, each alone: pace, breaker, retries, reading, families."""

import asyncio
import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.answer import Reply, Usage
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure, FailureReason
from unreel.core.retry import (
    RetryPolicy,
)
from unreel.network.http_client import HttpReply
from unreel.protocols.box_space import parse_box_space
from unreel.reviewers.endpoint.budget import RequestBudget, TokenPrice
from unreel.reviewers.endpoint.client import ModelServerClient
from unreel.reviewers.endpoint.load_control import (
    FIRST_LIMIT,
    LONGEST_PAUSE_S,
    STREAK,
    CircuitBreaker,
    CircuitOpenWait,
    ConcurrencyLimiter,
    RequestPermit,
    ServerLoadSignal,
)
from unreel.reviewers.endpoint.model_families import FAMILIES, get_model_family, match_model_family
from unreel.reviewers.endpoint.transport import (
    MOST_TOKENS,
    RequestFailure,
    parse_chat_response,
)

NOW = datetime(2026, 11, 1, 12, 0, 0, tzinfo=UTC)
DOWN = Failure(FailureReason.SERVER_ERROR, "status 500: oops")


def completion(**message: Any) -> bytes:
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()


async def fill(pace: ConcurrencyLimiter) -> list[int]:
    return [await pace.enter() for _ in range(pace.limit - pace.in_flight)]


def finish(pace: ConcurrencyLimiter, signal: ServerLoadSignal, numbers: list[int]) -> None:
    for number in numbers:
        pace.record(signal, number=number)
    for _ in numbers:
        pace.leave()


def test_the_limit_doubles_with_each_good_round_up_to_the_ceiling() -> None:
    async def limits() -> list[int]:
        pace = ConcurrencyLimiter(max_connections=12)
        seen = [pace.limit]
        for _ in range(3):
            for number in await fill(pace):
                pace.record(ServerLoadSignal.FINE, number=number)
                pace.leave()
                await pace.enter()
            while pace.in_flight:
                pace.leave()
            seen.append(pace.limit)
        return seen

    first, second, third, last = asyncio.run(limits())
    assert first == FIRST_LIMIT
    assert first < second <= third <= last <= 12


def test_one_burst_of_429_halves_the_limit_once_and_a_second_one_again() -> None:
    async def limits() -> list[int]:
        pace = ConcurrencyLimiter(max_connections=4)
        seen = []
        for _ in range(3):
            finish(pace, ServerLoadSignal.THROTTLED, await fill(pace))
            seen.append(pace.limit)
        return seen

    assert asyncio.run(limits()) == [2, 1, 1]


def test_trouble_stops_growth_and_calm_lets_it_grow_by_one_a_round() -> None:
    async def limits() -> tuple[int, int, int]:
        pace = ConcurrencyLimiter(max_connections=64)
        pace.record(ServerLoadSignal.TROUBLED, number=1)
        numbers = await fill(pace)
        after_trouble = pace.limit
        finish(pace, ServerLoadSignal.FINE, numbers)
        one_round = pace.limit
        for _ in range(3):
            numbers = await fill(pace)
            for number in numbers:
                pace.record(ServerLoadSignal.FINE, number=number)
            for _ in numbers:
                pace.leave()
        return after_trouble, one_round, pace.limit

    after_trouble, one_round, later = asyncio.run(limits())
    assert after_trouble == one_round == FIRST_LIMIT
    assert later in {FIRST_LIMIT + 1, FIRST_LIMIT + 2}


def test_the_nearest_deadline_goes_first_and_a_cancelled_wait_takes_no_place() -> None:
    async def order() -> list[str]:
        pace, came = ConcurrencyLimiter(max_connections=1), []

        async def come(name: str, *, before_s: float = math.inf) -> None:
            await pace.enter(before_s=before_s)
            came.append(name)
            pace.leave()

        await pace.enter()
        tasks = [
            asyncio.create_task(come("new")),
            asyncio.create_task(come("cancelled")),
            asyncio.create_task(come("later", before_s=9.0)),
            asyncio.create_task(come("sooner", before_s=3.0)),
        ]
        await asyncio.sleep(0)
        tasks[1].cancel()
        pace.leave()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert pace.in_flight == 0
        return came

    assert asyncio.run(order()) == ["sooner", "later", "new"]


def test_a_place_given_to_a_task_that_is_cancelled_is_given_back() -> None:
    async def in_flight() -> int:
        pace = ConcurrencyLimiter(max_connections=1)
        await pace.enter()
        waiting = asyncio.create_task(pace.enter())
        await asyncio.sleep(0)
        pace.leave()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return pace.in_flight

    assert asyncio.run(in_flight()) == 0


def test_no_connection_at_all_is_no_setting() -> None:
    with pytest.raises(InvalidSettingError):
        ConcurrencyLimiter(max_connections=0)


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
    assert isinstance(breaker.check(0), CircuitOpenWait)
    breaker.record_answer()
    assert breaker.check(0) == RequestPermit(probe=False)


def test_one_probe_at_a_time_looks_whether_the_server_is_back() -> None:
    breaker = tripped()
    assert breaker.check(5) == RequestPermit(probe=True)
    assert isinstance(breaker.check(5), CircuitOpenWait)
    breaker.record_failure(DOWN, now_s=5, probe=True, wait_s=0)
    assert isinstance(breaker.check(5.5), CircuitOpenWait)
    assert breaker.check(5 + LONGEST_PAUSE_S) == RequestPermit(probe=True)


def test_a_probe_that_was_never_finished_leaves_room_for_the_next() -> None:
    breaker = tripped()
    gate = breaker.check(5)
    assert isinstance(gate, RequestPermit)
    breaker.drop(gate)
    assert breaker.check(5) == RequestPermit(probe=True)


def test_an_outage_that_lasts_ends_questions_with_its_cause() -> None:
    breaker = tripped(outage_s=3)
    breaker.check(5)
    gate = breaker.check(5)
    assert isinstance(gate, Failure)
    assert gate.reason is FailureReason.SERVER_ERROR
    assert "oops" in gate.detail


def test_the_probe_waits_as_long_as_the_server_asks() -> None:
    breaker = CircuitBreaker(outage_s=60)
    for _ in range(STREAK):
        breaker.record_failure(DOWN, now_s=0, probe=False, wait_s=20)
    assert isinstance(breaker.check(19), CircuitOpenWait)
    assert breaker.check(20) == RequestPermit(probe=True)


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


def test_a_reply_with_odd_token_counts_keeps_its_text() -> None:
    body = json.loads(completion(content="REAL")) | {"usage": {"prompt_tokens": "many"}}
    assert parse_chat_response(HttpReply(200, json.dumps(body).encode()), now=NOW) == Reply(
        text="REAL"
    )


ODD_NUMBERS = [
    *("-1", "9223372036854775808", "1" + "0" * 4000, "1.5", "1e3", "1e999", "-1e999", "NaN"),
    *("Infinity", "true", '"5"', "null", "[5]", '{"a": 5}', "1000000001"),
]


@pytest.mark.parametrize("number", ODD_NUMBERS, ids=lambda text: text[:20])
@pytest.mark.parametrize("field", ["prompt_tokens", "completion_tokens"])
def test_a_number_that_counts_nothing_is_unknown_and_the_reply_stays(
    field: str, number: str
) -> None:
    told = {"prompt_tokens": "5", "completion_tokens": "5"} | {field: number}
    usage = ", ".join(f'"{name}": {value}' for name, value in told.items())
    body = (
        completion(content="REAL")[:-1] + f', "created": {number}, "usage": {{{usage}}}}}'.encode()
    )
    assert parse_chat_response(HttpReply(200, body), now=NOW) == Reply(text="REAL")


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


def test_words_of_a_server_in_a_failure_can_be_stored() -> None:
    deep = "[" * 900 + "]" * 900
    for ending in ('"\\ud800"', '"a\\u0000\\nb"', f'"{"x" * 100_000}"', deep):
        body = f'{{"choices": [{{"message": {{"content": ""}}, "finish_reason": {ending}}}]}}'
        outcome = parse_chat_response(HttpReply(200, body.encode()), now=NOW)
        assert isinstance(outcome, RequestFailure)
        outcome.failure.detail.encode()
        assert len(outcome.failure.detail) < 300


def test_the_dearest_answers_can_be_added_up() -> None:
    dear = Decimal(10**6)
    budget = RequestBudget(
        max_cost_usd=Decimal(10) ** 30,
        price=TokenPrice(input_usd_per_million=dear, output_usd_per_million=dear),
    )
    usage = Usage(input_tokens=MOST_TOKENS, output_tokens=MOST_TOKENS)

    async def spend() -> None:
        for _ in range(1000):
            reserved_usd = await budget.reserve(usage)
            assert isinstance(reserved_usd, Decimal)
            budget.settle(reserved_usd, usage, answered=True)

    asyncio.run(spend())
    assert budget.spending().cost_usd == 2 * 1000 * MOST_TOKENS


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
            pace=ConcurrencyLimiter(max_connections=1),
            patience=RetryPolicy(deadline_s=0.2, attempt_s=0.1, backoff_s=0.01, outage_s=0.1),
            budget=RequestBudget(),
            redact=str,
            seed=0,
        )
        return await asker.ask(b"{}", key="k")

    outcome = asyncio.run(ask())
    assert isinstance(outcome, Failure)
    assert outcome.reason is FailureReason.MALFORMED_REPLY
    assert outcome.detail.startswith("the reply cannot be read (TypeError)")


def test_a_refusal_still_counts_its_tokens() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 1}
    body = json.loads(completion(content=None, refusal="No.")) | {"usage": usage}
    outcome = parse_chat_response(HttpReply(200, json.dumps(body).encode()), now=NOW)
    assert outcome.usage == Usage(input_tokens=5, output_tokens=1)


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


def test_every_family_declares_a_box_space_that_can_be_read() -> None:
    for known in FAMILIES:
        declared = known.box_space(1280, 720)
        assert parse_box_space(declared, width=1280, height=720).name == declared
        assert get_model_family(known.name) is known


@pytest.mark.parametrize(
    ("size", "seen"),
    [((1280, 720), (1288, 728)), ((30, 20), (84, 56)), ((8000, 6000), (4116, 3080))],
    ids=["to multiples", "grown", "shrunk"],
)
def test_qwen_boxes_live_in_the_resized_frame(size: tuple[int, int], seen: tuple[int, int]) -> None:
    assert get_model_family("qwen2.5-vl").box_space(*size) == f"model-input {seen[0]}x{seen[1]}"


def test_half_characters_become_ones_that_a_table_can_hold() -> None:
    body = b'{"choices": [{"message": {"content": "REAL \\ud83d\\ude00 \\ud800"}}]}'
    assert parse_chat_response(HttpReply(200, body), now=NOW) == Reply(
        text="REAL \U0001f600 \ufffd"
    )


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
