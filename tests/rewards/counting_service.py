"""Reward service for tests, with a reviewer that rates a clip by its number of frames."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import uvicorn

from scripted import ScriptedReviewer
from synthesise import ClipRecipe, synthesise
from unreel.core.answer import Reply
from unreel.core.failure import Failure
from unreel.reviewers.contract import ReviewRequest
from unreel.rewards.service.app import create_reward_app
from unreel.rewards.service.settings import RewardServiceSettings

LATE, UNREADABLE = 31, 32
"""Numbers of frames of a clip that is answered too late, and of one whose answer has no score."""


def value_of(n_frames: int) -> float:
    """Return the reward of a clip with this number of frames."""
    return (n_frames % 5) / 4


class CountingReviewer(ScriptedReviewer):
    """Reviewer whose score is 1 + the number of frames modulo 5; it records frames and rates."""

    def __init__(self) -> None:
        super().__init__(name="counting")
        self.seen: list[tuple[int, Fraction]] = []
        self.released = threading.Event()

    async def answer(self, request: ReviewRequest) -> Reply | Failure:
        video = request.inputs[0].clip.facts.video
        self.seen.append((video.n_frames, video.average_rate))
        while video.n_frames == LATE and not self.released.is_set():
            await asyncio.sleep(0.05)
        if video.n_frames == UNREADABLE:
            return Reply(text="It is hard to say.")
        return Reply(text=f"<answer>{1 + video.n_frames % 5}</answer>")


def service_settings(folder: Path, reviewer: Any, **settings: Any) -> RewardServiceSettings:
    given = {"store": str(folder / "cache.sqlite"), "trusted": True, **settings}
    return RewardServiceSettings(models=[reviewer], protocols=["realism"], **given)


def small_clip(n_frames: int) -> bytes:
    return synthesise(ClipRecipe(n_frames=n_frames, rate=Fraction(8), width=64, height=64))


@contextmanager
def serve_rewards(folder: Path, reviewer: CountingReviewer, **settings: Any) -> Iterator[str]:
    """Serve over HTTP in a thread; the value is the address."""
    app = create_reward_app(service_settings(folder, reviewer, **settings))
    config = uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
        assert thread.is_alive()
    try:
        host, port = server.servers[0].sockets[0].getsockname()[:2]
        yield f"http://{host}:{port}"
    finally:
        reviewer.released.set()
        server.should_exit = True
        thread.join()
