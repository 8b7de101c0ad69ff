"""What a server of vLLM's is told of our own frames as one video: all of them, at their true instants."""

import base64
import json
from fractions import Fraction
from typing import Any

import pytest

from local.sheets import ask, shown
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.reviewers.config import ReviewerSection
from unreel.reviewers.contract import ClipInput, InputKind
from unreel.reviewers.endpoint.model_families import match_model_family
from unreel.reviewers.endpoint.reviewer import (
    EndpointReviewer,
    ModelIOFormat,
    build_chat_request_body,
)

IRREGULAR = [Fraction(0), Fraction(1001, 30_000), Fraction(9, 2), Fraction(81, 10)]
QWEN25, QWEN3, LLAMA = "qwen2.5-vl.mine", "qwen3-vl.mine", "videollama3.mine"


def body(model: str, *exhibits: ClipInput, **asked: Any) -> dict[str, Any] | Failure:
    built = build_chat_request_body(
        ask(exhibits, **asked),
        family=match_model_family(model),
        show="video",
        fields={"model": model},
    )
    return built if isinstance(built, Failure) else json.loads(built)


def told(model: str, *exhibits: ClipInput, **asked: Any) -> dict[str, Any]:
    found = body(model, *exhibits, **asked)
    assert not isinstance(found, Failure), found
    return found["media_io_kwargs"]["video"]


def test_the_frames_of_a_clip_go_as_one_video_byte_for_byte() -> None:
    exhibit = shown(range(40))
    found = body(QWEN3, exhibit)
    assert not isinstance(found, Failure)
    [video] = [part for part in found["messages"][0]["content"] if part["type"] == "video_url"]
    head, _, frames = video["video_url"]["url"].partition("base64,")
    assert head == "data:video/jpeg;"
    sent = [base64.b64decode(frame) for frame in frames.split(",")]
    assert sent == [frame.jpeg for frame in exhibit.frames]


@pytest.mark.parametrize("model", [QWEN3, LLAMA, "org/Qwen3-VL-8B-Thinking"])
def test_instants_are_exact_however_they_lie(model: str) -> None:
    video = told(model, shown(IRREGULAR))
    assert [Fraction(i) / Fraction(video["fps"]) for i in video["frames_indices"]] == IRREGULAR
    assert video["do_sample_frames"] is False


def test_qwen25_is_told_one_distance_or_not_asked() -> None:
    video = told(QWEN25, shown([0, Fraction(1, 2), 1, Fraction(3, 2)]))
    assert video["fps"] * len(video["frames_indices"]) / video["total_num_frames"] == 2.0
    refused = body(QWEN25, shown(IRREGULAR))
    assert isinstance(refused, Failure)
    assert "one distance" in refused.detail


def test_two_clips_whose_instants_differ_cannot_go_in_one_request() -> None:
    same = body(
        QWEN3, shown([0, 1]), shown([0, 1], seed=5), instrument="preference", prompt="paper"
    )
    assert not isinstance(same, Failure)
    refused = body(
        QWEN3, shown([0, 1]), shown([0, 2], seed=5), instrument="preference", prompt="paper"
    )
    assert isinstance(refused, Failure)
    assert "one set of timestamps" in refused.detail


@pytest.mark.parametrize(
    "model", ["openai/gpt-4.1", "dashscope/qwen3-vl-plus", "vllm/internvl3", "ollama/qwen2.5vl"]
)
def test_who_cannot_be_told_instants_is_refused_before_any_question(model: str) -> None:
    with pytest.raises(InvalidSettingError, match="show"):
        EndpointReviewer(model, io_format=ModelIOFormat(show="video"))


def test_a_model_behind_vllm_is_another_reviewer_in_each_form() -> None:
    section = ReviewerSection(model="vllm/qwen3-vl.mine", show="video")
    assert section.served_name == "vllm/qwen3-vl.mine?show=video"
    reviewer = EndpointReviewer(section.model, io_format=section.manner)
    assert reviewer.wants == {InputKind.FRAMES}
