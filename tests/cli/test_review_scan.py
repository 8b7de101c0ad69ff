"""`unreel review` searches a clip of more than a minute, says so, and says what it costs."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from chat import says, serve_chat
from synthesise import ClipRecipe, synthesise

ANSWER = '[{"start": 20, "end": 24, "boxes": [{"time": 20, "box": [10, 10, 60, 60]}], "category": "other", "confidence": 0.7}]'


@pytest.fixture(scope="module")
def long_clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "long.mp4"
    path.write_bytes(synthesise(ClipRecipe(n_frames=130, rate=Fraction(2))))
    return path


def test_a_long_clip_is_searched_announced_and_shown(run, long_clip: Path, tmp_path: Path) -> None:
    asked: list[str] = []

    def reply(body: bytes, _headers: object):
        content = json.loads(body)["messages"][-1]["content"]
        text = " ".join(part["text"] for part in content if part["type"] == "text")
        asked.append(text)
        return says(ANSWER if "JSON list" in text else "<answer>4</answer>")

    with serve_chat(reply) as port:
        model = ("--model", f"compatible/tiny@http://127.0.0.1:{port}/v1")
        done = run(
            "review", long_clip, *model, "--scan", 6, "--trusted", "--json", "--out", tmp_path / "e"
        )
        (row,) = json.loads(done.stdout)["clips"]
        found = {opinion["instrument"]: opinion for opinion in row["opinions"]}
        assert set(found) == {"trace@1", "realism@2", "locate@1"}
        segments = found["locate@1"]["verdict"]["segments"]
        assert 18 <= segments[0]["trace"]["span"]["start_us"] / 1e6 <= 22
        assert "at most 6 questions of 8 frames for each of 1 reviewers" in done.stderr
        assert "searched the clip: 6 questions, cost unknown" in done.stderr
        assert sum("JSON list" in text for text in asked) == 6
        assert (tmp_path / "e" / "evidence.html").exists()

        asked.clear()
        done = run("review", long_clip, *model, "--scan", 0, "--trusted", "--json")
        (row,) = json.loads(done.stdout)["clips"]
        assert [opinion["instrument"] for opinion in row["opinions"]] == ["trace@1", "realism@2"]
        assert len(asked) == 2
