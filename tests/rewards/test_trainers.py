"""Scripts that call the service as UniRL, verl-omni and DanceGRPO do: numbers for good clips, none for failures."""

import asyncio
import base64
import importlib.util
import inspect
import json
import math
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from rewards.counting_service import (
    LATE,
    UNREADABLE,
    CountingReviewer,
    serve_rewards,
    small_clip,
    value_of,
)
from unreel.cli.reward import client as write_client

GOOD = range(2, 18)
"""Numbers of frames of 16 clips."""
FAILURES = ("undecodable", "late", "unreadable")
_N_FRAMES = {"late": LATE, "unreadable": UNREADABLE}


@dataclass(frozen=True)
class TrainerSetup:
    """A running service, and the client file that a trainer's environment has."""

    url: str
    reviewer: CountingReviewer
    folder: Path
    client_file: Path

    def clip(self, name: str | int) -> Path:
        """Return a file with this number of frames, or one that fails."""
        path = self.folder / f"{name}.mp4"
        if not path.exists():
            broken = name == "undecodable"
            n_frames = name if isinstance(name, int) else _N_FRAMES.get(name, 0)
            path.write_bytes(b"not a video" if broken else small_clip(n_frames))
        return path


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrainerSetup]:
    folder = tmp_path_factory.mktemp("trainer")
    client_file = folder / "unreel_reward_client.py"
    written = CliRunner().invoke(write_client, ["--out", str(client_file)])
    assert written.exit_code == 0, written.output
    reviewer = CountingReviewer()
    with serve_rewards(folder, reviewer, dialects=("unirl",), deadline_s=6) as url:
        yield TrainerSetup(url, reviewer, folder, client_file)


class UnirlBackend:
    """The steps of UniRL's remote backend: health check, one request, a check of each sub-metric."""

    def __init__(self, url: str, reward: str) -> None:
        self.url, self.reward = url, reward
        with urllib.request.urlopen(f"{url}/health") as reply:
            assert reward in json.load(reply)["rewards"]

    def compute_rewards(self, videos: list[bytes], prompts: list[str]) -> list[float | str]:
        """Return one reward for each video, or the text of its error."""
        queries = [
            {
                "history": [{"text": prompt, "video_b64": base64.b64encode(video).decode()}],
                "required_rewards": [self.reward],
                "metadata": None,
            }
            for video, prompt in zip(videos, prompts, strict=True)
        ]
        request = urllib.request.Request(
            f"{self.url}/score",
            data=json.dumps({"requests": queries}).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as reply:
            body = json.load(reply)
        rewards: list[float | str] = []
        for result, error in zip(body["results"], body["errors"], strict=True):
            metrics = result.get(self.reward)
            if metrics is None:
                rewards.append(error[self.reward])
            elif all(type(each) is float and math.isfinite(each) for each in metrics.values()):
                rewards.append(next(iter(metrics.values())))
            else:
                rewards.append("not finite")
        return rewards


def test_unirl_scores_16_clips_and_gets_an_error_for_each_failure(trainer: TrainerSetup) -> None:
    backend = UnirlBackend(trainer.url, "unreel")
    videos = [trainer.clip(name).read_bytes() for name in GOOD]
    assert backend.compute_rewards(videos, ["p"] * 16) == [value_of(n) for n in GOOD]
    videos = [trainer.clip(name).read_bytes() for name in (4, *FAILURES)]
    good, *failed = backend.compute_rewards(videos, ["p"] * 4)
    assert good == value_of(4)
    for text, reason in zip(
        failed, ("format-refused", "out-of-time", "malformed-reply"), strict=True
    ):
        assert str(text).startswith(reason)


class VerlOmniManager:
    """The steps of verl-omni's manager of several rewards: load a file, pass keywords, combine."""

    def __init__(self, path: Path, *, required: bool, **settings: Any) -> None:
        spec = importlib.util.spec_from_file_location("custom_module", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.function = module.compute_score
        self.required, self.settings = required, settings
        assert inspect.iscoroutinefunction(self.function)
        kinds = {each.kind for each in inspect.signature(self.function).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD in kinds

    async def run_single(self, video: np.ndarray) -> dict[str, float]:
        """Return the result of one response."""
        keywords = {
            "data_source": "set",
            "solution_image": video,
            "ground_truth": "a prompt",
            "extra_info": {"num_turns": None, "rollout_reward_scores": {}},
            **self.settings,
        }
        try:
            result = await self.function(**keywords)
            return {key: float(each) for key, each in result.items()}
        except Exception as error:
            if self.required:
                msg = "Required sub-reward failed"
                raise RuntimeError(msg) from error
            return {"score": 0.0}


def _frames(n_frames: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (n_frames, 3, 32, 32), np.uint8)


def test_verl_omni_scores_16_clips_and_stops_at_each_failure(trainer: TrainerSetup) -> None:
    settings = {"server_url": trainer.url, "fps": 16}
    manager = VerlOmniManager(trainer.client_file, required=True, **settings)
    start = len(trainer.reviewer.seen)

    async def score_all() -> list[dict[str, float]]:
        return await asyncio.gather(*(manager.run_single(_frames(n)) for n in GOOD))

    results = asyncio.run(score_all())
    assert [each["score"] for each in results] == [value_of(n) for n in GOOD]
    assert len({frozenset(each) for each in results}) == 1
    seen = sorted(trainer.reviewer.seen[start:])
    assert seen == [(n_frames, Fraction(16)) for n_frames in GOOD]
    manager.settings["deadline_s"] = 2
    broken = np.full((4, 3, 32, 32), np.nan, np.float32)
    for video in (broken, _frames(LATE), _frames(UNREADABLE)):
        with pytest.raises(RuntimeError, match="Required"):
            asyncio.run(manager.run_single(video))


VERL_OMNI = """
import asyncio, sys
folder, url, path = sys.argv[1:]
sys.path.insert(0, folder)
from unreel_reward_client import compute_score
video = open(path, "rb").read()
try:
    result = asyncio.run(compute_score("set", video, "p", {}, server_url=url, on_failure="exit"))
except Exception:
    result = {"score": 0.0}
print(result["score"])
"""


def test_verl_omni_can_end_at_a_failure_that_it_would_count_as_zero(trainer: TrainerSetup) -> None:
    command = [sys.executable, "-I", "-S", "-c", VERL_OMNI, str(trainer.folder), trainer.url]
    for name, status, shown in ((4, 0, f"{value_of(4)}\n"), ("undecodable", 70, "")):
        done = subprocess.run(
            [*command, str(trainer.clip(name))], check=False, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (status, shown), done.stderr


DANCE_GRPO = """
import json, sys
folder, url, on_failure, *paths = sys.argv[1:]
sys.path.insert(0, folder)
from unreel_reward_client import DanceGrpoReward, RewardClient
inferencer = DanceGrpoReward(RewardClient(url, deadline_s=float(60 if len(paths) > 1 else 2)), on_failure=on_failure)
for path in paths:
    try:
        reward = inferencer.reward([path], ["a prompt"], use_norm=True)
        vq_reward = float(reward[0]["VQ"])
        mq_reward = float(reward[0]["MQ"])
    except Exception as e:
        vq_reward = mq_reward = -1.0
    print(json.dumps([vq_reward, mq_reward]), flush=True)
"""


def _run_dance_grpo(
    trainer: TrainerSetup, paths: list[Path], on_failure: str = "exit"
) -> tuple[int, list[list[float]], str]:
    command = [sys.executable, "-I", "-S", "-c", DANCE_GRPO, str(trainer.folder), trainer.url]
    done = subprocess.run(
        [*command, on_failure, *map(str, paths)], check=False, capture_output=True, text=True
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_dance_grpo_scores_16_clips(trainer: TrainerSetup) -> None:
    status, rewards, errors = _run_dance_grpo(trainer, [trainer.clip(name) for name in GOOD])
    assert status == 0, errors
    assert rewards == [[value_of(n)] * 2 for n in GOOD]


@pytest.mark.parametrize("name", FAILURES)
def test_dance_grpo_ends_at_a_failure_in_spite_of_its_handler(
    trainer: TrainerSetup, name: str
) -> None:
    status, rewards, errors = _run_dance_grpo(trainer, [trainer.clip(name)])
    assert status == 70
    assert rewards == []
    assert "training stops" in errors


def test_dance_grpo_ends_if_the_service_is_gone(trainer: TrainerSetup) -> None:
    gone = TrainerSetup("http://127.0.0.1:9", trainer.reviewer, trainer.folder, trainer.client_file)
    start = time.monotonic()
    status, rewards, errors = _run_dance_grpo(gone, [trainer.clip(4)])
    assert (status, rewards) == (70, [])
    assert "timeout" in errors
    assert time.monotonic() - start < 60


def test_dance_grpo_gets_nan_if_it_asks_for_it(trainer: TrainerSetup) -> None:
    status, rewards, _ = _run_dance_grpo(trainer, [trainer.clip("undecodable")], "nan")
    assert status == 0
    assert np.isnan(rewards).all()
