"""The client of the reward service: formats, retries, deadlines, and no number for a failure."""

import ast
import asyncio
import base64
import io
import math
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rewards.stub_service import StubReply, reply_with, reward_of, serve_stub
from unreel.rewards.client import unreel_reward_client as client_module
from unreel.rewards.client.unreel_reward_client import (
    DanceGrpoReward,
    RewardClient,
    RewardClientError,
    build_trl_reward,
    compute_score,
    encode_npy,
    flow_grpo_score,
)

FILE = Path(client_module.__file__)
FRAMES = np.arange(2 * 3 * 4 * 5, dtype=np.uint8).reshape(2, 3, 4, 5)


def _sent_array(item: dict[str, Any]) -> np.ndarray:
    return np.load(io.BytesIO(base64.b64decode(item["video"]["array"])))


class FakeTensor:
    """The methods of a torch tensor that the client calls."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.shape = array.shape

    def detach(self) -> "FakeTensor":
        return self

    def cpu(self) -> "FakeTensor":
        return self

    def is_floating_point(self) -> bool:
        return self.array.dtype.kind == "f"

    def float(self) -> "FakeTensor":
        return FakeTensor(self.array.astype(np.float32))

    def numpy(self) -> np.ndarray:
        return self.array


def test_the_file_needs_only_the_standard_library_of_python_3_9() -> None:
    tree = ast.parse(FILE.read_text(encoding="utf-8"), feature_version=(3, 9))
    imported = {
        (node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names


def test_the_file_loads_in_python_3_9() -> None:
    older = shutil.which("python3.9")
    if older is None or subprocess.run([older, "-V"], check=False, capture_output=True).returncode:
        pytest.skip("no Python 3.9")
    code = f"import runpy; runpy.run_path({str(FILE)!r})"
    subprocess.run([older, "-I", "-c", code], check=True)


def test_files_are_uploaded_and_arrays_keep_every_frame_and_the_frame_rate(tmp_path: Path) -> None:
    (tmp_path / "clip.mp4").write_bytes(b"\r\n--clip\r\n")
    videos = [str(tmp_path / "clip.mp4"), b"bytes", FRAMES]
    with serve_stub(reply_with(0.1, 0.2, 0.3)) as stub:
        client = RewardClient(stub.url, "secret", fps=24)
        rewards = client.score(videos, ["a", "b", None], step=7, group="g")
    assert [each.require_value() for each in rewards] == [0.1, 0.2, 0.3]
    (request,) = stub.requests
    assert stub.uploads == [{"video0": b"\r\n--clip\r\n", "video1": b"bytes"}]
    assert [item.get("prompt") for item in request["items"]] == ["a", "b", None]
    assert {(item["step"], item["group"]) for item in request["items"]} == {(7, "g")}
    np.testing.assert_array_equal(_sent_array(request["items"][2]), FRAMES)
    assert request["items"][2]["video"]["fps"] == 24
    assert 0 < request["deadline_s"] < 120
    assert stub.tokens == ["Bearer secret"]
    assert stub.paths == ["/v1/rewards"]


def test_tensors_and_floating_point_frames_become_uint8() -> None:
    floats = FRAMES / 255
    for frames in (FakeTensor(FRAMES), FakeTensor(floats), floats, FakeTensor(floats[:1])):
        sent = np.load(io.BytesIO(encode_npy(frames)))
        np.testing.assert_array_equal(sent, FRAMES[: len(sent)])
    assert np.load(io.BytesIO(encode_npy(FRAMES[0]))).shape == (1, 3, 4, 5)


@pytest.mark.parametrize(
    "frames",
    [
        np.full((2, 3, 4, 5), np.nan),
        np.full((2, 3, 4, 5), -1.0),
        FRAMES.astype(np.int64),
        FRAMES[:, :2],
        FRAMES[0, 0],
    ],
)
def test_frames_without_a_clear_meaning_are_refused(frames: np.ndarray) -> None:
    with pytest.raises(ValueError, match="frames"):
        encode_npy(frames)


def test_an_array_without_a_frame_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="frame rate"):
        RewardClient("http://127.0.0.1:1").score([FRAMES])


@pytest.mark.parametrize("value", [math.nan, math.inf, True, -0.5, 1.5, "0.5", None])
def test_a_value_that_is_no_reward_is_a_failure(value: Any) -> None:
    result = {"value": value, "failure": None}
    with serve_stub(reply_with(result, 0.5)) as stub:
        bad, good = RewardClient(stub.url).score([b"a", b"b"])
    assert bad.value is None
    assert good.value == 0.5
    with pytest.raises(RewardClientError, match="unreadable"):
        bad.require_value()


def test_a_failed_video_keeps_its_reason_and_an_absent_result_is_one(tmp_path: Path) -> None:
    def reply(request: dict[str, Any]) -> StubReply:
        first = {"id": request["items"][0]["id"], **reward_of(None, "corrupt media")}
        return 200, {}, {"results": [first]}

    with serve_stub(reply) as stub:
        rewards = RewardClient(stub.url).score([b"a", b"b", tmp_path / "absent.mp4"])
    assert [each.value for each in rewards] == [None, None, None]
    reasons = [each.failure and each.failure.reason for each in rewards]
    assert reasons == ["corrupt media", "unreadable", "unreadable"]


def test_a_busy_service_is_asked_again_after_the_time_that_it_names() -> None:
    replies: list[StubReply] = [
        (429, {"Retry-After": "1"}, {"error": {"reason": "busy", "message": "wait"}}),
        (200, {}, b"<html>a proxy</html>"),
        (503, {}, b""),
    ]

    def reply(request: dict[str, Any]) -> StubReply:
        return replies.pop(0) if replies else reply_with(0.5)(request)

    start = time.monotonic()
    with serve_stub(reply) as stub:
        (reward,) = RewardClient(stub.url).score([b"a"])
    assert reward.value == 0.5
    assert len(stub.requests) == 4
    assert time.monotonic() - start >= 1
    deadlines = [request["deadline_s"] for request in stub.requests]
    assert deadlines == sorted(deadlines, reverse=True)


@pytest.mark.parametrize("kind", ["stalled", "closed", "unreachable", "busy"])
def test_a_request_ends_at_its_deadline(kind: str) -> None:
    released = threading.Event()

    def reply(_: dict[str, Any]) -> StubReply | None:
        if kind == "stalled":
            released.wait(60)
        return (429, {"Retry-After": "60"}, b"") if kind == "busy" else None

    start = time.monotonic()
    with serve_stub(reply) as stub:
        url = "http://127.0.0.1:9" if kind == "unreachable" else stub.url
        (reward,) = RewardClient(url, deadline_s=0.4).score([b"a"])
        released.set()
    assert time.monotonic() - start < 30
    assert reward.value is None
    assert reward.failure is not None
    assert reward.failure.reason == "timeout"


def test_a_refused_token_stops_the_caller() -> None:
    error = {"error": {"reason": "unauthorised", "message": "no such token"}}
    with (
        serve_stub(lambda _: (401, {}, error)) as stub,
        pytest.raises(RewardClientError, match="no such token"),
    ):
        build_trl_reward(RewardClient(stub.url))(["p"], ["c"], video=[b"a"])
    assert len(stub.requests) == 1


def test_large_batches_are_split_and_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_BATCH_BYTES", 250)

    def reply(request: dict[str, Any]) -> StubReply:
        values = [int(item["id"]) / 10 for item in request["items"]]
        return reply_with(*values)(request)

    with serve_stub(reply) as stub:
        rewards = RewardClient(stub.url).score([b"x" * 100] * 7)
    assert [each.value for each in rewards] == [index / 10 for index in range(7)]
    assert sorted(len(request["items"]) for request in stub.requests) == [1, 2, 2, 2]


def test_verl_omni_gets_a_score_with_parts_or_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_stub(reply_with(0.75)) as stub:
        call = compute_score("set", FRAMES, "a cat", {"fps": 16}, server_url=stub.url)
        assert asyncio.run(call) == {"score": 0.75, "calibrated": 0.0, "realism": 0.75}
        (item,) = stub.requests[0]["items"]
        assert item["prompt"] == "a cat"
        assert item["video"]["fps"] == 16
        assert _sent_array(item).shape == FRAMES.shape
        with pytest.raises(ValueError, match="frame rate"):
            asyncio.run(compute_score("set", FRAMES, "a cat", {}, server_url=stub.url))
        stub.reply = reply_with(None)
        monkeypatch.setenv("UNREEL_REWARD_FPS", "8")
        with pytest.raises(RewardClientError, match="out of time"):
            asyncio.run(compute_score("set", FRAMES, "a cat", server_url=stub.url))


def test_trl_gets_none_for_a_failure() -> None:
    with serve_stub(reply_with(0.25, None)) as stub:
        reward = build_trl_reward(RewardClient(stub.url))
        prompts = [[{"role": "user", "content": "a cat"}], "a dog"]
        values = reward(
            prompts=prompts, completions=["", ""], completion_ids=[], video=[b"1", b"2"]
        )
    assert values == [0.25, None]
    assert [item["prompt"] for item in stub.requests[0]["items"]] == ["a cat", "a dog"]
    assert reward.__name__ == "unreel_reward"


def test_flow_grpo_gets_scores_or_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    videos = np.stack([FRAMES, FRAMES]) / 255
    with serve_stub(reply_with(0.25, 0.5)) as stub:
        monkeypatch.setenv("UNREEL_REWARD_URL", stub.url)
        score = flow_grpo_score(fps=16)
        assert "device" not in flow_grpo_score.__code__.co_varnames
        assert score(videos, ("a", "b"), {}) == ([0.25, 0.5], {})
        stub.reply = reply_with(0.25, None)
        with pytest.raises(RewardClientError, match="out of time"):
            score(videos, ("a", "b"), {})


def test_dance_grpo_may_ask_for_nan(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("a.mp4", "b.mp4")]
    for path in paths:
        Path(path).write_bytes(b"clip")
    with serve_stub(reply_with(0.5, None)) as stub:
        reward = DanceGrpoReward(RewardClient(stub.url), on_failure="nan")
        good, bad = reward.reward(paths, ["a", "b"], use_norm=True)
        stub.reply = lambda _: (401, {}, {"error": {"reason": "unauthorised", "message": "no"}})
        (refused,) = reward.reward(paths[:1], ["a"], use_norm=True)
    assert {name: good[name] for name in ("VQ", "MQ", "Overall")} == dict.fromkeys(
        ("VQ", "MQ", "Overall"), 0.5
    )
    assert math.isnan(good["TA"])
    assert all(math.isnan(each) for each in (*bad.values(), *refused.values()))


def _advantages(rewards: list[float]) -> list[float]:
    mean, deviation = statistics.fmean(rewards), statistics.stdev(rewards)
    return [round((each - mean) / deviation, 2) + 0.0 for each in rewards]


def test_a_failure_as_none_leaves_the_advantages_of_its_group_and_zero_does_not() -> None:
    with serve_stub(reply_with(0.7, 0.8, 0.9, None)) as stub:
        rewards = build_trl_reward(RewardClient(stub.url))(["p"] * 4, ["c"] * 4, video=[b"v"] * 4)
    assert rewards == [0.7, 0.8, 0.9, None]
    assert _advantages([each for each in rewards if each is not None]) == [-1, 0, 1]
    as_zero = _advantages([each or 0.0 for each in rewards])
    assert as_zero == [0.24, 0.49, 0.73, -1.47]
    as_nan = np.array([math.nan if each is None else each for each in rewards])
    assert np.isnan((as_nan - as_nan.mean()) / as_nan.std()).all()
