"""The service as a process: a drain on SIGTERM, and kills under load."""

import asyncio
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from email.message import Message
from pathlib import Path
from typing import Any

import httpx
import pytest

from chat import Reply, says, serve_chat
from postgres import Postgres
from reward_process import KillTrial, ask, padded, served
from scripted import ANSWERS
from unreel.rewards.guards.training_steps import iter_reward_log_rows
from unreel.rewards.service import serving
from unreel.rewards.service.settings import RewardServiceSettings

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


@pytest.mark.parametrize("ask_once", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_kills_lose_no_request(tmp_path: Path, clip_bytes: Clips, *, ask_once: bool) -> None:
    """2 kills under load: each request ends in a value, a null with a reason, or a refusal."""
    kill_services(tmp_path, clip_bytes, n_kills=2, n_clips=60, ask_once=ask_once)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("ask_once", [False, True])
def test_20_kills_of_one_process(tmp_path: Path, clip_bytes: Clips, *, ask_once: bool) -> None:
    kill_services(tmp_path, clip_bytes, n_kills=20, n_clips=600, ask_once=ask_once)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("ask_once", [False, True])
def test_20_kills_of_two_processes_with_postgresql(
    tmp_path: Path, clip_bytes: Clips, postgres: Postgres, *, ask_once: bool
) -> None:
    store = postgres.create_database(f"kills_{ask_once}".lower())
    kill_services(
        tmp_path, clip_bytes, n_kills=20, n_clips=600, ask_once=ask_once, n_processes=2, store=store
    )


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("ask_once", [False, True])
def test_20_kills_of_two_ray_replicas(
    tmp_path: Path, clip_bytes: Clips, postgres: Postgres, *, ask_once: bool
) -> None:
    store = postgres.create_database(f"ray_{ask_once}".lower())
    options = ["--engine", "ray", "--replicas", "2"]
    kill_services(
        tmp_path, clip_bytes, *options, n_kills=20, n_clips=600, ask_once=ask_once, store=store
    )


def test_a_proxy_of_ray_that_starts_late_is_waited_for(tmp_path: Path, monkeypatch: Any) -> None:
    """Ray gives up after 60 s, and the second call finds what the first has started."""
    serve = pytest.importorskip("ray.serve", reason="Ray Serve is not installed")
    outcomes = iter([TimeoutError("Proxies not available"), None, TimeoutError("late"), None, None])

    def answer(*_: Any, **__: Any) -> None:
        if outcome := next(outcomes):
            raise outcome

    def stop(_address: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(serving, "_JOIN_RAY", nullcontext)
    for name in ("start", "run"):
        monkeypatch.setattr(serve, name, answer)
    monkeypatch.setattr(serve, "shutdown", lambda: None)
    settings = RewardServiceSettings(models=["coin"], store=str(tmp_path / "cache.sqlite"))
    with pytest.raises(KeyboardInterrupt):
        serving.run_ray_replicas(settings, host="127.0.0.1", port=0, n_replicas=2, on_start=stop)
    assert next(outcomes, "all used") == "all used"


def kill_services(
    folder: Path,
    clip_bytes: Clips,
    *options: str,
    n_kills: int,
    n_clips: int,
    ask_once: bool,
    **trial: Any,
) -> None:
    """Kill services under load, and compare the questions at the model's server with the clips."""
    asked: Counter[str] = Counter()

    def count(body: bytes, headers: Message) -> Reply:
        asked["questions"] += 1
        time.sleep(0.02)
        return says(ANSWERS["reality"])

    clips = [padded(clip_bytes(number % 4), number) for number in range(n_clips)]
    with serve_chat(count) as chat:
        model = f"compatible/tiny@http://127.0.0.1:{chat}/v1"
        log = folder / "rewards.jsonl"
        given = ["--model", model, "--protocol", "reality", "--log", str(log), *options]
        given += ["--ask-once"] if ask_once else []
        kills = KillTrial(folder, clips, given, n_kills, **trial)
        asyncio.run(kills.run())
    ends, n_questions = kills.ends, asked["questions"]
    rows = [row for row in iter_reward_log_rows(log) if "measured" not in row]
    valued = Counter(row["value"] is not None for row in rows)
    print(f"ask once {ask_once}: {dict(ends)}, {n_questions} questions, {n_clips} clips")
    print(f"rows with a value {valued[True]}, without {valued[False]}")
    # Each reply has its row; a kill between the two leaves a row without a reply.
    assert ends["value"] <= valued[True] <= ends["value"] + 16 * n_kills
    assert len({row["content"] for row in rows if row["value"] is not None}) == ends["value"]
    assert ends["value"] + ends["worker-died"] == n_clips
    if ask_once:
        # A killed process may have claimed a question and not sent it yet.
        assert n_clips - ends["worker-died"] <= n_questions <= n_clips
    else:
        assert ends["worker-died"] == 0
        assert n_clips <= n_questions <= n_clips + 16 * n_kills  # at most 16 were under way
