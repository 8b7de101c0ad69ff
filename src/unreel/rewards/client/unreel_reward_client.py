"""Client of the unreel reward service: one file that needs the standard library of Python 3.9 only.

Copy it next to your trainer and set UNREEL_REWARD_URL, UNREEL_REWARD_TOKEN and UNREEL_REWARD_FPS, or pass them:

    verl-omni   compute_score
    TRL         build_trl_reward()
    Flow-GRPO   flow_grpo_score()
    DanceGRPO   DanceGrpoReward()
    others      RewardClient().score(videos, prompts)

A failure is never a number. It is None, an exception or the end of the process. A video is the path of a
file, the bytes of a file, or an array (NumPy, torch) of frames: (T, C, H, W), (T, H, W, C), or one frame
(C, H, W), (H, W, C); uint8, or floating point from 0 to 1. Arrays need `fps`. A check from a shell:

    python unreel_reward_client.py http://127.0.0.1:8060 clip.mp4
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import logging
import math
import os
import random
import secrets
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, NamedTuple, NoReturn, Sequence  # noqa: UP035
from urllib.parse import urlsplit

FAILED_EXIT_STATUS = 70
_LOG = logging.getLogger("unreel_reward_client")
_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
_REFUSED = frozenset({401, 403, 404, 405})
_BATCH_BYTES = 64 << 20
_BATCH_ITEMS = 16
_COLOURS, _DIMENSIONS = 3, 4


class RewardClientError(RuntimeError):
    """Error of a failed request or of one failed video; `reason` is one word for programs."""

    def __init__(self, reason: str, message: str, *, retry_s: float | None = None) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.retry_s = retry_s
        """Seconds to wait before the same request may succeed; None if a retry is useless."""


class VideoReward(NamedTuple):
    """Reward of one video: `value` from 0 to 1 (1 looks real), or None with the `failure`."""

    value: float | None
    failure: RewardClientError | None
    reply: dict[str, Any]

    def require_value(self) -> float:
        """Return the value, or raise the failure."""
        if self.value is None:
            raise self.failure or RewardClientError("unreadable", "no value")
        return self.value


class RewardClient:
    """Client of one reward service, with its URL, token and time limit."""

    def __init__(
        self, url: str = "", token: str = "", *, fps: float = 0.0, deadline_s: float = 120.0
    ) -> None:
        settings = os.environ  # noqa: TID251  the trainer's
        self.url = (url or settings.get("UNREEL_REWARD_URL", "")).rstrip("/")
        self.token = token or settings.get("UNREEL_REWARD_TOKEN", "")
        self.fps = fps or float(settings.get("UNREEL_REWARD_FPS", "0"))
        self.deadline_s = deadline_s
        if urlsplit(self.url).scheme not in {"http", "https"}:
            raise ValueError(
                "pass url='http://host:port' of `unreel reward serve`, or set UNREEL_REWARD_URL"
            )

    def score(
        self, videos: Sequence[Any], prompts: Sequence[Any] | None = None, **fields: Any
    ) -> list[VideoReward]:
        """Return one reward for each video, in their order.

        Args:
            videos: paths, bytes of files, or arrays of frames.
            prompts: the prompt of each video.
            fields: `step` (number of the training step) and `group` (name), for the guards.

        Raises:
            RewardClientError: The service refuses the token, or is not a reward service.
            ValueError: An array has no valid layout, range or fps.
        """
        texts = [None] * len(videos) if prompts is None else list(prompts)
        if len(texts) != len(videos):
            raise ValueError(
                f"{len(videos)} videos and {len(texts)} prompts; each video needs one prompt"
            )
        rewards: dict[int, VideoReward] = {}
        batches: list[list[_RequestItem]] = [[]]
        for index, video in enumerate(videos):
            try:
                source, data = _encode_video(video, self.fps, f"video{index}")
            except OSError as error:
                rewards[index] = _build_failure_reward("unreadable", f"{video}: {error}")
                continue
            prompt = texts[index] if isinstance(texts[index], str) else None
            described = {"id": str(index), "prompt": prompt, "video": source, **fields}
            item = _RequestItem(index, {k: v for k, v in described.items() if v is not None}, data)
            size = sum(map(_count_bytes, (*batches[-1], item)))
            if size > _BATCH_BYTES or len(batches[-1]) == _BATCH_ITEMS:
                batches.append([])
            batches[-1].append(item)
        with ThreadPoolExecutor(4) as pool:
            for scored in pool.map(self._score_batch, filter(None, batches)):
                rewards.update(scored)
        return [rewards[index] for index in range(len(videos))]

    def _score_batch(self, items: list[_RequestItem]) -> dict[int, VideoReward]:
        try:
            return self._post(items, time.monotonic() + self.deadline_s)
        except RewardClientError as error:
            if error.reason == "refused":
                raise
            _LOG.warning("no reward for %d videos: %s", len(items), error)
            return {item.position: VideoReward(None, error, {}) for item in items}

    def _post(self, items: list[_RequestItem], stop_at: float) -> dict[int, VideoReward]:
        """Send `items` until the service replies; retry after the requested delay, longer each time."""
        pause_s = 0.25
        while True:
            try:
                return self._post_once(items, stop_at)
            except RewardClientError as error:
                if error.retry_s is None:
                    raise
                problem = error
            except (OSError, http.client.HTTPException) as error:
                text = f"{self.url}: {type(error).__name__}: {error}"
                problem = RewardClientError("unreachable", text, retry_s=0.0)
            wait_s = max(problem.retry_s or 0.0, pause_s * random.uniform(0.5, 1.0))  # noqa: S311
            pause_s = min(2 * pause_s, 10.0)
            if time.monotonic() + wait_s >= stop_at:
                raise RewardClientError(
                    "timeout", f"no reward within {self.deadline_s:g} s; last problem: {problem}"
                )
            time.sleep(wait_s)

    def _post_once(self, items: list[_RequestItem], stop_at: float) -> dict[int, VideoReward]:
        kind, body = _encode_request(items, max(0.1, 0.9 * (stop_at - time.monotonic())))
        headers = {"Content-Type": kind, "Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        status, wait, reply = _post_request(f"{self.url}/v1/rewards", headers, body, stop_at)
        if status != http.client.OK:
            raise _read_error(status, wait, reply)
        try:
            results = {str(each["id"]): each for each in json.loads(reply)["results"]}
        except (ValueError, TypeError, KeyError) as error:
            raise RewardClientError(
                "unreadable",
                f"{self.url} did not reply as a reward service: {error!r}",
                retry_s=0.0,
            ) from error
        return {item.position: _read_result(results.get(str(item.position))) for item in items}


async def compute_score(
    data_source: Any = None,  # noqa: ARG001
    solution_image: Any = None,
    ground_truth: Any = None,
    extra_info: dict[str, Any] | None = None,
    **settings: Any,
) -> dict[str, float]:
    """Return the reward of one response of verl-omni, from all of its frames.

    Args:
        data_source: not used.
        solution_image: frames (T, C, H, W), or one frame (C, H, W).
        ground_truth: the prompt.
        extra_info: may contain `fps` and `prompt`.
        settings: `server_url`, `token`, `fps`, `deadline_s`, and `on_failure`: `raise`, or `exit` to end
            the process even if the trainer catches exceptions.
    """
    extra = extra_info or {}
    prompt = ground_truth if isinstance(ground_truth, str) else extra.get("prompt")

    def score_one() -> VideoReward:
        client = RewardClient(settings.get("server_url", ""), settings.get("token", ""))
        client.fps = float(extra.get("fps") or settings.get("fps") or client.fps)
        client.deadline_s = float(settings.get("deadline_s", client.deadline_s))
        return client.score([solution_image], [prompt])[0]

    try:
        reward = await asyncio.get_running_loop().run_in_executor(None, score_one)
        score = reward.require_value()
    except Exception as error:
        if settings.get("on_failure") == "exit":
            _end_process(error)
        raise
    metrics = {"calibrated": reward.reply.get("calibrated"), **(reward.reply.get("parts") or {})}
    return {"score": score, **{k: math.nan if v is None else float(v) for k, v in metrics.items()}}


def build_trl_reward(
    client: RewardClient | None = None, *, video_column: str = "video"
) -> Callable[..., list[float | None]]:
    """Return a reward function for TRL; a failed video is None, which TRL 1.16 leaves out of its group.

    The videos are in the column `video_column`. Without that column, the completions are their paths.
    """
    connection = client or RewardClient()

    def unreel_reward(
        prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        videos = columns.get(video_column) or [_get_last_text(each) for each in completions]
        step = getattr(columns.get("trainer_state"), "global_step", None)
        texts = [_get_last_text(each) for each in prompts]
        return [each.value for each in connection.score(videos, texts, step=step)]

    return unreel_reward


def flow_grpo_score(*, fps: float = 0.0) -> Callable[..., tuple[list[float], dict[str, Any]]]:
    """Return a reward function for Flow-GRPO; a failed video raises."""
    client = RewardClient(fps=fps)

    def score(images: Any, prompts: Any, _metadata: Any) -> tuple[list[float], dict[str, Any]]:
        rewards = client.score([images[index] for index in range(len(images))], list(prompts))
        return [each.require_value() for each in rewards], {}

    return score


class DanceGrpoReward:
    """Replacement for DanceGRPO's `inferencer`.

    DanceGRPO catches every exception and trains with -1.0 instead. So a failure ends this process with a
    message and status 70, unless `on_failure` is `nan`.
    """

    def __init__(self, client: RewardClient | None = None, *, on_failure: str = "exit") -> None:
        self.client = client or RewardClient()
        self.on_failure = on_failure

    def reward(
        self, video_paths: Sequence[str], prompts: Sequence[str], *_: Any, **_use_norm: Any
    ) -> list[dict[str, float]]:
        """Return VQ, MQ and Overall of each video, all equal to its reward, and TA as NaN: not measured."""
        values = [math.nan] * len(video_paths)
        try:
            for index, reward in enumerate(self.client.score(video_paths, prompts)):
                if self.on_failure != "nan" or reward.value is not None:
                    values[index] = reward.require_value()
        except Exception as error:  # noqa: BLE001
            if self.on_failure != "nan":
                _end_process(error)
            _LOG.warning("no rewards: %s", error)
        return [{"VQ": each, "MQ": each, "TA": math.nan, "Overall": each} for each in values]


class _RequestItem(NamedTuple):
    position: int
    fields: dict[str, Any]
    data: bytes


def _end_process(error: BaseException) -> NoReturn:
    sys.stderr.write(f"\nunreel reward failed, training stops: {error!r}\n")
    sys.stderr.flush()
    os._exit(FAILED_EXIT_STATUS)


def _build_failure_reward(reason: str, message: str) -> VideoReward:
    _LOG.warning("no reward: %s: %s", reason, message)
    return VideoReward(None, RewardClientError(reason, message), {})


def _get_last_text(message: Any) -> Any:
    """Return the text of a prompt or completion; for a conversation, the text of its last message."""
    if isinstance(message, (list, tuple)) and message and isinstance(message[-1], dict):
        return message[-1].get("content")
    return message


def _count_bytes(item: _RequestItem) -> int:
    return len(item.data) + len(item.fields["video"].get("array", ""))


def _encode_video(video: Any, fps: float, name: str) -> tuple[dict[str, Any], bytes]:
    """Return the field `video` of an item of a request, and the bytes of the item's file part."""
    if hasattr(video, "shape"):
        if not fps > 0:
            raise ValueError(
                "an array needs its frame rate: pass the generator's frames per second as fps"
            )
        return {"array": base64.b64encode(encode_npy(video)).decode(), "fps": fps}, b""
    if isinstance(video, (bytes, bytearray, memoryview)):
        return {"upload": name}, bytes(video)
    with open(video, "rb") as file:  # noqa: PTH123
        return {"upload": name}, file.read()


def encode_npy(frames: Any) -> bytes:
    """Return a NumPy array or torch tensor of frames as an npy file of uint8."""
    if hasattr(frames, "detach"):
        frames = frames.detach().cpu()
        frames = (frames.float() if frames.is_floating_point() else frames).numpy()
    if frames.ndim == _DIMENSIONS - 1:
        frames = frames[None]
    shape = tuple(int(each) for each in frames.shape)
    if len(shape) != _DIMENSIONS or _COLOURS not in (shape[1], shape[3]):
        raise ValueError(
            f"frames of shape {shape}; expected (T, C, H, W) or (T, H, W, C) with 3 colours"
        )
    if frames.dtype.kind == "f":
        if not bool(((frames > -0.01) & (frames < 1.01)).all()):  # noqa: PLR2004
            raise ValueError(
                "floating-point frames must be from 0 to 1, without NaN; rescale them first"
            )
        frames = (frames.clip(0, 1) * 255).round().astype("uint8")
    if str(frames.dtype) != "uint8":
        raise ValueError(f"frames of {frames.dtype}; expected uint8, or floating point from 0 to 1")
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(11 + len(header)) % 64) + b"\n"
    start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    return start + header + bytes(frames.tobytes())


def _encode_request(items: list[_RequestItem], deadline_s: float) -> tuple[str, bytes]:
    request = {"items": [item.fields for item in items], "deadline_s": round(deadline_s, 3)}
    boundary = secrets.token_hex(16)
    start = f"--{boundary}\r\nContent-Disposition: form-data; name="
    pieces = [f'{start}"request"\r\n\r\n'.encode(), json.dumps(request).encode()]
    for item in items:
        if name := item.fields["video"].get("upload"):
            kind = "Content-Type: application/octet-stream"
            pieces.append(f'\r\n{start}"{name}"; filename="{name}"\r\n{kind}\r\n\r\n'.encode())
            pieces.append(item.data)
    if len(pieces) == 2:  # noqa: PLR2004
        return "application/json", pieces[1]
    pieces.append(f"\r\n--{boundary}--\r\n".encode())
    return f"multipart/form-data; boundary={boundary}", b"".join(pieces)


def _post_request(
    url: str, headers: dict[str, str], body: bytes, stop_at: float
) -> tuple[int, str | None, bytes]:
    """Send `body` by POST until `stop_at`, without proxy or redirects; return status, delay, reply."""
    address = urlsplit(url)
    client = http.client
    kind = client.HTTPSConnection if address.scheme == "https" else client.HTTPConnection
    left_s = max(0.001, stop_at - time.monotonic())
    connection = kind(address.hostname or "", address.port, timeout=left_s)
    try:
        connection.connect()
        line = connection.sock
        connection.request("POST", address.path, body=body, headers=headers)
        line.settimeout(max(0.001, stop_at - time.monotonic()))
        response = connection.getresponse()
        reply = bytearray()
        while piece := response.read1(1 << 16):
            reply += piece
            if len(reply) > _BATCH_BYTES:
                raise client.HTTPException(f"the reply is longer than {_BATCH_BYTES} bytes")
            line.settimeout(max(0.001, stop_at - time.monotonic()))
        return response.status, response.headers.get("Retry-After"), bytes(reply)
    finally:
        connection.close()


def _read_error(status: int, wait: str | None, reply: bytes) -> RewardClientError:
    try:
        error = json.loads(reply)["error"]
        reason, message = str(error["reason"]), f"{error['message']} (HTTP {status})"
    except (ValueError, TypeError, KeyError):
        reason, message = f"http_{status}", reply[:300].decode("utf-8", "replace")
    if status in _REFUSED:
        return RewardClientError("refused", f"{reason}: {message}")
    wait_s = float(wait) if wait and wait.isdigit() else 0.0
    return RewardClientError(reason, message, retry_s=wait_s if status in _RETRIED else None)


def _read_result(result: Any) -> VideoReward:
    if not isinstance(result, dict):
        return _build_failure_reward("unreadable", "the reply has no result for this video")
    value, failure = result.get("value"), result.get("failure")
    if failure is not None:
        known = failure if isinstance(failure, dict) else {}
        return _build_failure_reward(str(known.get("reason")), str(known.get("message", failure)))
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1:
        return VideoReward(float(value), None, result)
    return _build_failure_reward("unreadable", f"the value is {value!r}, not a number from 0 to 1")


if __name__ == "__main__":
    if len(sys.argv) < 3:  # noqa: PLR2004
        sys.exit("usage: python unreel_reward_client.py URL VIDEO...")
    scored = RewardClient(sys.argv[1]).score(sys.argv[2:])
    for path, each in zip(sys.argv[2:], scored):  # noqa: B905  Python 3.9
        sys.stdout.write(f"{path}: {each.failure or each.value}\n")
    sys.exit(any(each.value is None for each in scored))
