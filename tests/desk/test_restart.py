"""A killed desk takes up its cases, and asks no committed question twice."""

import json
import re
import time
from pathlib import Path

import pytest

from chat import says, serve_chat
from desk.desk_process import drop, running, sign_in
from reward_process import padded
from scripted import ANSWERS


def committed(folder: Path) -> set[str]:
    """Keys of the answers that are in the tables of all cases."""
    from unreel.asking.answer_table import ANSWERS as SCHEMA
    from unreel.engine.location import StorageLocation
    from unreel.engine.table import LanceTable

    tables = [
        LanceTable(StorageLocation(str(path.parent)) / path.name, SCHEMA)
        for path in folder.glob("desk-cases/cases/*/answers.lance")
    ]
    return {row["key"] for table in tables if table.exists() for row in table.rows(["key"])}


def check_logs(folder: Path, n_cases: int) -> None:
    """Every case is there, has ended, and some were taken up again."""
    logs = [path.read_text() for path in folder.glob("desk-cases/cases/*/log.jsonl")]
    events = [[json.loads(line)["event"] for line in log.splitlines()] for log in logs]
    assert len(events) == n_cases
    assert all(each[-1] == "finished" for each in events)
    assert any(each.count("started") > 1 for each in events)


def check_originals(folder: Path, clips: dict[str, bytes]) -> None:
    """Every original is there as it was sent, and no case is damaged."""
    originals = {path.name: path for path in folder.glob("desk-cases/cases/*/original/*")}
    assert {name: path.read_bytes() for name, path in originals.items()} == clips
    assert not [*folder.glob("desk-cases/quarantine/*")]


def restart(tmp_path: Path, clips: dict[str, bytes], n_kills: int) -> None:
    """Drop clips, kill the desk some times in the middle of them, and let it end."""
    answered: list[str] = []

    def reply(body: bytes, _headers: object) -> object:
        name = "trace" if b"coordinates" in body else "realism"
        time.sleep(0.3)
        answered.append(name)
        return says(ANSWERS[name])

    with serve_chat(reply) as port:
        (tmp_path / "desk.toml").write_text(
            "[[reviewers]]\nname = 'One'\n"
            f"models = ['vllm/qwen3-vl@http://127.0.0.1:{port}/v1']\nprotocols = ['trace', 'realism']\n"
        )
        n_questions, seen, lost = 2 * len(clips), -1, 0
        for kill in range(n_kills):
            with running(tmp_path, "--trusted") as (process, link):
                client, token = sign_in(link)
                if not kill:
                    drop(client, token, "One", clips)
                target = n_questions * (kill + 1) // (n_kills + 1)
                until_s = time.monotonic() + 240
                while (seen := len(committed(tmp_path))) < target:
                    assert time.monotonic() < until_s, "no answers come"
                    time.sleep(0.05)
                process.kill()
                process.wait()
                client.close()
            time.sleep(1)  # the model ends what was in flight
            kept, before = committed(tmp_path), len(answered)
            assert seen <= len(kept) < n_questions
            lost_before, lost = lost, before - len(kept)
            assert lost - lost_before <= 4, "more was lost than was in flight"
            check_originals(tmp_path, clips)
        lost = len(answered) - len(committed(tmp_path))
        with running(tmp_path, "--trusted") as (_process, link):
            client, _token = sign_in(link)
            until_s = time.monotonic() + 240
            while len(re.findall('data-stage="done"', page := client.get("/").text)) < len(clips):
                assert time.monotonic() < until_s, page
                time.sleep(0.2)
            client.close()
    assert len(committed(tmp_path)) == n_questions
    # Each answer in a table was given once; only what was in flight at a kill was asked again.
    assert len(answered) == n_questions + lost
    assert lost <= 4 * n_kills
    check_logs(tmp_path, len(clips))
    check_originals(tmp_path, clips)


def test_a_killed_desk_goes_on(tmp_path: Path, clip_bytes) -> None:
    restart(tmp_path, {f"{n}.mp4": clip_bytes(n) for n in range(3)}, n_kills=2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_50_cases_survive_20_kills(tmp_path: Path, clip_bytes) -> None:
    restart(tmp_path, {f"{n}.mp4": padded(clip_bytes(0), n) for n in range(50)}, n_kills=20)
