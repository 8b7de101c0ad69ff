"""What an endpoint is sent, what it costs, and what may never leave."""

import asyncio
import base64
import json
import logging
import pickle
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from unreel.core.answer import Reply, Usage
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.core.question import Condition
from unreel.core.retry import RetryPolicy
from unreel.reviewers.contract import ReviewRequest, WholeClip
from unreel.reviewers.endpoint.budget import TokenPrice, read_token_prices
from unreel.reviewers.endpoint.model_families import match_model_family
from unreel.reviewers.endpoint.reviewer import (
    EndpointLimits,
    EndpointReviewer,
    ModelIOFormat,
    build_chat_request_body,
)
from unreel.reviewers.message_parts import Showing
from unreel.testing.reviewers import run

SECRET = "sk-4f0c9e-never-shown"
QUICK = RetryPolicy(deadline_s=1, attempt_s=0.4, backoff_s=0.02, outage_s=0.2)
PRICE = TokenPrice(input_usd_per_million=Decimal(100), output_usd_per_million=Decimal(1000))
MakeSheet = Callable[..., ReviewRequest]


def answer_all(model: str, requests: list[ReviewRequest], **options: Any) -> tuple[Any, list[Any]]:
    """The reviewer after its work, and the outcomes in the order of the sheets."""
    options.setdefault("limits", EndpointLimits(patience=QUICK))
    reviewer = EndpointReviewer(model, **options)

    async def work() -> list[Reply | Failure]:
        return await asyncio.gather(*(reviewer.answer(sheet) for sheet in requests))

    return reviewer, run(reviewer, work)


def body_of(request: ReviewRequest, model: str, show: Showing = "frames") -> dict[str, Any]:
    body = build_chat_request_body(
        request, family=match_model_family(model), show=show, fields={"model": model}
    )
    assert isinstance(body, bytes)
    found: dict[str, Any] = json.loads(body)
    return found


def test_a_reply_carries_tokens_and_latency(fault_run: Any, make_sheet: MakeSheet) -> None:
    _, [reply] = answer_all(fault_run("500", 0).model, [make_sheet()])
    assert reply.text == "<answer>0</answer>"
    assert reply.usage == Usage(input_tokens=1000, output_tokens=10)
    assert 4_000 < reply.latency_us < 2_000_000


def test_frames_are_sent_in_order_as_pictures_before_the_prompt(make_sheet: MakeSheet) -> None:
    [message] = body_of(make_sheet(), "gpt-4.1")["messages"]
    first, second, prompt = message["content"]
    assert first["image_url"]["url"] == (
        "data:image/jpeg;base64," + base64.b64encode(b"\xff\xd8one").decode()
    )
    assert base64.b64decode(second["image_url"]["url"].partition(",")[2]) == b"two"
    assert prompt == {"type": "text", "text": "Real or fake?"}


@pytest.mark.parametrize(
    ("prompt", "n_clips", "sent"),
    [
        ("Real? <video >", 1, ["Real? ", "image_url", "image_url"]),
        ("See\n<video>\nReal?", 1, ["See\n", "image_url", "image_url", "\nReal?"]),
        (
            "<video><video>Which?",
            2,
            ["Video 1:", "image_url", "image_url", "Video 2:", "image_url", "image_url", "Which?"],
        ),
    ],
)
def test_clips_are_sent_where_the_prompt_marks_their_place(
    make_sheet: MakeSheet, prompt: str, n_clips: int, sent: list[str]
) -> None:
    sheet = replace(make_sheet(n_clips=n_clips), prompt=prompt)
    [message] = body_of(sheet, "gpt-4.1")["messages"]
    assert [part.get("text", part["type"]) for part in message["content"]] == sent


def test_a_whole_clip_goes_as_a_video_url(make_sheet: MakeSheet) -> None:
    sheet = make_sheet(whole=WholeClip(b"bytes", "video/mp4"))
    [message] = body_of(sheet, "Qwen3-VL-8B", "clip")["messages"]
    url = message["content"][0]["video_url"]["url"]
    assert url == "data:video/mp4;base64," + base64.b64encode(b"bytes").decode()


def test_sound_is_sent_only_where_the_condition_says_so(make_sheet: MakeSheet) -> None:
    on = make_sheet(sound_wav=b"RIFF", condition=Condition(audio="on"))
    off = make_sheet(sound_wav=b"RIFF")
    [message] = body_of(on, "gemini-2.5-pro")["messages"]
    assert message["content"][2]["input_audio"] == {
        "format": "wav",
        "data": base64.b64encode(b"RIFF").decode(),
    }
    assert "input_audio" not in json.dumps(body_of(off, "gemini-2.5-pro"))


@pytest.mark.parametrize(
    ("model", "condition"),
    [
        ("gpt-4.1", Condition(audio="on")),
        ("gemini-2.5-pro", Condition(audio="on")),
        ("qwen3-vl-8b-thinking", Condition(thinking="off")),
        ("qwen3-vl-8b", Condition(thinking="on")),
        ("a-stranger", Condition(thinking="off")),
    ],
    ids=[
        "a model that hears nothing",
        "a clip without sound",
        "a model that always thinks",
        "a model that never thinks",
        "a model of which nothing is known",
    ],
)
def test_a_condition_that_cannot_be_met_is_not_asked(
    model: str, condition: Condition, make_sheet: MakeSheet
) -> None:
    sheet = make_sheet(condition=condition)
    found = build_chat_request_body(
        sheet, family=match_model_family(model), show="frames", fields={}
    )
    assert isinstance(found, Failure)
    assert found.reason is FailureReason.REQUEST_REJECTED


def test_thinking_is_switched_in_the_words_of_the_family(make_sheet: MakeSheet) -> None:
    def sent(model: str, thinking: Any) -> dict[str, Any]:
        body = body_of(make_sheet(condition=Condition(thinking=thinking)), model)
        return {name: value for name, value in body.items() if name not in {"messages", "model"}}

    assert sent("GLM-4.5V", "off") == {"chat_template_kwargs": {"enable_thinking": False}}
    assert sent("gpt-5.1", "off") == {"reasoning_effort": "none"}
    assert sent("gpt-5", "on") == {"reasoning_effort": "high"}
    assert sent("gemini-2.5-flash", "off") == {"reasoning_effort": "none"}
    assert sent("qwen3-vl-plus", "on") == {"enable_thinking": True}
    assert sent("Qwen3-VL-8B-Instruct", "off") == {}
    assert sent("GLM-4.5V", "default") == {}


def test_a_prompt_that_asks_for_thoughts_is_thinking_and_cannot_be_without(
    make_sheet: MakeSheet,
) -> None:
    def asked(thinking: Any) -> bytes | Failure:
        sheet = replace(make_sheet(condition=Condition(thinking=thinking)), prompt="<think>?")
        return build_chat_request_body(
            sheet, family=match_model_family("gpt-4.1"), show="frames", fields={}
        )

    assert isinstance(asked("on"), bytes)
    assert isinstance(asked("off"), Failure)


def test_the_key_goes_to_the_server_and_nowhere_else(
    fault_run: Any,
    make_sheet: MakeSheet,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    shown = []
    for fault in ("401", "echo", "cut", "500", "html"):
        run_ = fault_run(fault, 100)
        reviewer, outcomes = answer_all(
            run_.model, [make_sheet(n) for n in range(3)], api_key=SECRET
        )
        assert run_.stats()["headers"]["authorization"] == f"Bearer {SECRET}"
        shown += [repr(reviewer), reviewer.name, repr(reviewer.spending)]
        shown += [repr(outcome) for outcome in outcomes]
        shown += [str(outcome) for outcome in outcomes]
        shown += [repr(pickle.dumps(outcome)) for outcome in outcomes]
    echoed = [text for text in shown if "[key]" in text]
    assert echoed, "no fault repeated the key, so nothing was proved"
    told = capfd.readouterr()
    assert SECRET not in "\n".join([*shown, caplog.text, told.out, told.err])
    assert "question" in caplog.text


def test_the_key_of_the_question_makes_requests_idempotent(
    fault_run: Any, make_sheet: MakeSheet
) -> None:
    run_ = fault_run("500", 50)
    sheets = [make_sheet(n) for n in range(10)]
    answer_all(run_.model, sheets)
    bodies = run_.stats()["bodies"]
    assert set(bodies) == {sheet.key for sheet in sheets}
    assert max(map(len, bodies.values())) > 1
    assert all(len(set(sent)) == 1 for sent in bodies.values())


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("declared-huge", FailureReason.REPLY_TOO_LARGE),
        ("gzip", FailureReason.MALFORMED_REPLY),
        ("moved", FailureReason.REQUEST_REJECTED),
        ("400", FailureReason.REQUEST_REJECTED),
        ("thought-out", FailureReason.EMPTY_REPLY),
        ("429-long", FailureReason.RATE_LIMITED),
        ("odd-words", FailureReason.SERVER_ERROR),
    ],
)
def test_further_faults_end_with_their_cause(
    fault: str, reason: FailureReason, fault_run: Any, make_sheet: MakeSheet
) -> None:
    _, [outcome] = answer_all(fault_run(fault, 100).model, [make_sheet()])
    assert isinstance(outcome, Failure)
    assert outcome.reason is reason


def test_a_cap_on_requests_is_never_passed(fault_run: Any, make_sheet: MakeSheet) -> None:
    run_ = fault_run("500", 30)
    limits = EndpointLimits(max_requests=20, patience=QUICK)
    reviewer, outcomes = answer_all(run_.model, [make_sheet(n) for n in range(50)], limits=limits)
    assert run_.stats()["n_requests"] == reviewer.spending.n_requests == 20
    assert reviewer.spending.n_questions == 50
    spent = [o for o in outcomes if isinstance(o, Failure)]
    assert FailureReason.BUDGET_SPENT in {failure.reason for failure in spent}


def test_a_cap_on_cost_is_kept_with_requests_in_flight(
    fault_run: Any, make_sheet: MakeSheet
) -> None:
    run_ = fault_run("500", 0)  # one answer costs 0.1 + 0.01 USD
    limits = EndpointLimits(max_cost_usd=Decimal("1.2"), price=PRICE, patience=QUICK)
    sheets, manner = [make_sheet(n) for n in range(40)], ModelIOFormat(max_tokens=10)
    reviewer, outcomes = answer_all(run_.model, sheets, limits=limits, io_format=manner)
    assert Decimal("0.66") <= reviewer.spending.cost_usd <= Decimal("1.2")
    assert (
        sum(isinstance(o, Reply) for o in outcomes) * Decimal("0.11") == reviewer.spending.cost_usd
    )


@pytest.mark.parametrize(
    "text",
    [
        "not toml",
        "prices = 1",
        '[models."a"]\ninput_usd_per_million = 1',
        '[models."a"]\ninput_usd_per_million = -1\noutput_usd_per_million = 1',
        '[models."a"]\ninput_usd_per_million = true\noutput_usd_per_million = 1',
        '[models."a"]\ninput_usd_per_million = nan\noutput_usd_per_million = 1',
        '[models."a"]\ninput_usd_per_million = 1e300\noutput_usd_per_million = 1',
    ],
)
def test_a_price_file_that_says_something_else_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(UnreadableSourceError, match="per model"):
        read_token_prices(file)


def test_the_address_is_no_part_of_the_name_but_the_manner_is() -> None:
    def name(model: str, **manner: Any) -> str:
        return EndpointReviewer(model, io_format=ModelIOFormat(**manner)).name

    assert (
        name("vllm/org/qwen3-vl@http://a:1/v1") == name("vllm/org/qwen3-vl") == "vllm/org/qwen3-vl"
    )
    assert name("openai/gpt-4.1", max_tokens=64, seed=5) == "openai/gpt-4.1?max_tokens=64,seed=5"
    assert name("vllm/tiny", family="qwen3-vl", show="clip") == (
        "vllm/tiny?show=clip,family=qwen3-vl"
    )


@pytest.mark.parametrize(
    "manner", [ModelIOFormat(show="clip"), ModelIOFormat(show="video")], ids=str
)
def test_what_a_family_does_not_take_is_refused_at_once(manner: ModelIOFormat) -> None:
    with pytest.raises(InvalidSettingError, match="family"):
        EndpointReviewer("openai/gpt-4.1", io_format=manner)
    with pytest.raises(InvalidSettingError, match="seed"):
        EndpointReviewer("openai/gpt-5", io_format=ModelIOFormat(seed=1))


def test_boxes_are_read_in_the_frame_as_shown_and_not_in_the_clip(make_sheet: MakeSheet) -> None:
    [exhibit] = make_sheet().inputs
    assert exhibit.clip.facts.video.width == 640
    assert EndpointReviewer("openai/gpt-4.1").box_space(exhibit) == "model-input 320x180"
    assert EndpointReviewer("vllm/qwen3-vl-8b").box_space(exhibit) == "permille"
