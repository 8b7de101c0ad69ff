"""Guards of a running service: canaries, alarms, and the end of the service after an alarm."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from reward_process import padded
from rewards.test_service import Clips, item, run, serving
from scripted import ScriptedReviewer
from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.rewards.service.canaries import read_canary_pairs
from unreel.rewards.service.settings import RewardServiceSettings


def write_benchmark(root: Path, clips: Clips) -> Path:
    """A clip and its twin, as `unreel curate` with `[inject]` writes them."""
    root.mkdir()
    rows = []
    for number, (name, label) in enumerate({"a": "real", "a+blur": "fake", "b": "real"}.items()):
        (root / f"{number}.mp4").write_bytes(clips(number))
        rows.append({"file_name": f"{number}.mp4", "name": name, "label": label})
    (root / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return root


def test_canaries_are_asked_anew_and_logged_in_pairs_and_a_blind_reward_stops_the_service(
    tmp_path: Path, clip_bytes: Clips, scripted: ScriptedReviewer, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "rewards.jsonl"
    options = {
        "log": log,
        "protocols": ["reality"],
        "canaries": write_benchmark(tmp_path / "canaries", clip_bytes),
        "canary_rate": 1.0,
        "stop_on": ("canaries",),
    }

    async def work() -> int:
        async with serving(tmp_path, scripted, **options) as client:
            for step in range(60):
                batch = {"items": [item(padded(clip_bytes(0), step), step=step)]}
                reply = await client.post("/v1/rewards", json=batch)
                if reply.status_code == 503:
                    break
                assert len(reply.json()["results"]) == 1
                await asyncio.sleep(0.02)
        async with serving(tmp_path, scripted, **options) as client:  # the restart reads the log
            refused = await client.post("/v1/rewards", json=batch)
            ready = await client.get("/ready")
            assert (refused.status_code, ready.status_code) == (503, 503)
            assert "guard canaries" in refused.json()["error"]["message"]
            assert refused.json() == ready.json()
            metrics = (await client.get("/metrics")).text
            assert 'unreel_reward_guard_alarm{guard="canaries"} 1.0' in metrics
            assert 'unreel_reward_guard_estimate{guard="canaries"} 0.5' in metrics
        return step

    n_steps = run(work())
    assert 5 <= n_steps < 59
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    canaries = [row for row in rows if row.get("canary")]
    assert len(canaries) == 2 * n_steps
    assert len({row["content"] for row in canaries}) == 2 * n_steps
    assert len(scripted.keys) == len(set(scripted.keys)) == 3 * n_steps
    assert any("alarm: guard canaries" in message for message in caplog.messages)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"stop_on": ("any",)}, "--log"),
        ({"held_out": ["other"]}, "--log"),
        ({"log": Path("log.jsonl"), "stop_on": ("heldout",)}, "held-out"),
    ],
)
def test_settings_of_guards_are_checked(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises((InvalidSettingError, UnknownNameError), match=expected):
        RewardServiceSettings(models=["recorded"], **settings)


def test_a_benchmark_without_twins_is_refused(tmp_path: Path, clip_bytes: Clips) -> None:
    root = write_benchmark(tmp_path / "canaries", clip_bytes)
    table = root / "metadata.jsonl"
    table.write_text(table.read_text().replace("a+blur", "c"), encoding="utf-8")
    with pytest.raises(InvalidSettingError, match=r"\[inject\]"):
        read_canary_pairs(root)
