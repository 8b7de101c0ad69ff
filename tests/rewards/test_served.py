"""The service as a process: a drain on SIGTERM, and kills under load."""

import asyncio
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import Any

import httpx
import pytest

from chat import Reply, says, serve_chat
from reward_process import KillTrial, ask, padded, served
from scripted import ANSWERS

Clips = Callable[[int], bytes]


def test_sigterm_finishes_the_requests_that_run(tmp_path: Path, clip_bytes: Clips) -> None:
    def slowly(body: bytes, headers: Message) -> Reply:
        time.sleep(1)
        return says(ANSWERS["reality"])

    async def work(process: subprocess.Popen[str], address: str) -> dict[str, Any]:
        async with httpx.AsyncClient(base_url=address, timeout=60) as client:
            running = asyncio.create_task(ask(client, clip_bytes(0)))
            await asyncio.sleep(0.7)
            process.send_signal(signal.SIGTERM)
            result: dict[str, Any] = (await running).json()["results"][0]
            return result

    with serve_chat(slowly) as chat:
        model = f"compatible/tiny@http://127.0.0.1:{chat}/v1"
        with served(tmp_path, "--model", model, "--protocol", "reality") as (process, address):
            result = asyncio.run(work(process, address))
            assert result["value"] is not None, result
            assert process.wait(timeout=30) == 0


@pytest.mark.slow
@pytest.mark.parametrize("ask_once", [False, True])
def test_kills_lose_no_request_and_repeat_no_stored_answer(
    tmp_path: Path, clip_bytes: Clips, *, ask_once: bool
) -> None:
    """20 kills under load: each request ends in a value, a null with a reason, or a refusal."""
    n_kills = int(os.environ.get("REWARD_KILLS", "20"))
    asked: Counter[str] = Counter()

    def count(body: bytes, headers: Message) -> Reply:
        asked["questions"] += 1
        time.sleep(0.02)
        return says(ANSWERS["reality"])

    clips = [padded(clip_bytes(number % 4), number) for number in range(40 * n_kills)]
    with serve_chat(count) as chat:
        model = f"compatible/tiny@http://127.0.0.1:{chat}/v1"
        options = ["--model", model, "--protocol", "reality", *(["--ask-once"] if ask_once else [])]
        trial = KillTrial(tmp_path, clips, options, n_kills)
        asyncio.run(trial.run())
    ends = trial.ends
    print(f"ask once {ask_once}: {dict(ends)}, {asked['questions']} questions, {len(clips)} clips")
    assert ends["value"] + ends["worker-died"] == len(clips)
    if ask_once:
        assert asked["questions"] <= len(clips)
    else:
        assert ends["worker-died"] == 0
