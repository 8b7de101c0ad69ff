"""Conditions that are asked for are carried out on the wire, left empty, or refused at the edge."""

import io
import json
import shutil
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from unreel.core.errors import InvalidSettingError

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from synthesise import ClipRecipe, synthesise
from unreel.core.content_ids import compute_clip_id
from unreel.core.question import Condition
from unreel.core.settings import read_environment_settings
from unreel.engine.storage_access import ClipAccessSettings
from unreel.evaluation.run_job import evaluate, open_run
from unreel.evaluation.scoring import score_run


def prompt_of(body: dict[str, Any]) -> str:
    parts = body["messages"][-1]["content"]
    return "".join(part["text"] for part in parts if part["type"] == "text")


@pytest.mark.parametrize(
    ("protocol", "marks", "said"),
    [("trace", "on", ""), ("trace", "off", " marks=off"), ("reality", "on", " marks=on"), ("reality", "off", "")],
)  # fmt: skip
def test_marks_are_part_of_the_condition_where_the_instrument_has_them_otherwise(
    start, protocol: str, marks: str, said: str
) -> None:
    run = start(protocol=protocol, condition=[{"marks": marks}, {}])
    marked, default = run.recipe.condition
    assert str(marked.as_condition()) == str(default.as_condition()) + said
    assert len(run.scope.conditions) == (2 if said else 1)


def test_trace_shows_two_frames_a_second_unless_told_otherwise(start) -> None:
    def plans(**asked: Any) -> list[str]:
        return [condition.sampling for condition in start(**asked).scope.conditions]

    assert plans(protocol="trace") == ["fps-2"]
    assert plans(protocol="trace", condition=[{}, {"sampling": "uniform-8"}]) == [
        "fps-2",
        "uniform-8",
    ]
    assert plans(protocol="reality") == ["uniform-8"]


def test_thinking_goes_over_the_wire_with_a_prompt_that_suits_it(start, server) -> None:
    conditions = [{"thinking": "on"}, {"thinking": "off"}, {}]
    run = start(model=server.model, family="glm-v", condition=conditions, limit=1)
    assert [c.prompt for c in run.scope.conditions] == ["paper", "direct", "paper"]
    assert evaluate(run).answers.done == 3
    sent = {
        ("<think>" in prompt_of(body), json.dumps(body.get("chat_template_kwargs")))
        for body in server.asked
    }
    assert sent == {
        (True, '{"enable_thinking": true}'),
        (False, '{"enable_thinking": false}'),
        (True, "null"),
    }
    again = open_run(
        run.place,
        ClipAccessSettings(settings=read_environment_settings(), trusted=True),
        ledgers=run.ledgers,
    )
    assert again.scope == run.scope


@pytest.mark.parametrize(
    ("model", "condition", "why"),
    [
        ("openai/gpt-5.1", {"thinking": "off", "prompt": "paper"}, "asks for thoughts"),
        ("openai/o3", {"thinking": "off"}, "openai-reasoning family"),
        ("openai/gpt-4.1", {"thinking": "on", "prompt": "direct"}, "openai family"),
        ("vllm/a-stranger", {"thinking": "off"}, "unknown family"),
        ("coin", {"thinking": "on"}, "does not think"),
    ],
)
def test_thinking_that_cannot_be_carried_out_is_refused_before_anything_is_asked(
    start, model: str, condition: dict[str, str], why: str
) -> None:
    with pytest.raises(InvalidSettingError, match=why):
        start(model=model, condition=[condition])


@pytest.fixture
def cleaned(clips: Path, tmp_path: Path) -> Path:
    """The clips, where c2 and its partner c0 have copies without their watermark."""
    folder = shutil.copytree(clips.parent, tmp_path / "marked")
    (folder / "clean").mkdir()
    for number in (0, 2):
        recipe = ClipRecipe(n_frames=12, seed=100 + number)
        (folder / "clean" / f"c{number}.mp4").write_bytes(synthesise(recipe))
    header, *lines = (folder / "manifest.csv").read_text(encoding="utf-8").splitlines()
    copies = {"c0.mp4": "clean/c0.mp4", "c2.mp4": "clean/c2.mp4"}
    rows = [f"{line},{copies.get(line.partition(',')[0], '')}" for line in lines]
    table = folder / "manifest.csv"
    table.write_text("\n".join([f"{header},cleaned", *rows]), encoding="utf-8")
    return table


BOTH = [{}, {"watermark": "removed"}]


def test_a_clip_is_shown_without_its_watermark_where_there_is_such_a_copy(
    start, server, cleaned: Path
) -> None:
    run = start(model=server.model, benchmark=cleaned, condition=BOTH)
    assert evaluate(run).answers.done == 10
    kept, removed = score_run(run)
    assert (kept.scorecard.n_questions, removed.scorecard.n_questions) == (8, 2)
    shown = {row["clip"] for row in run.answers.rows() if "watermark=removed" in row["condition"]}
    assert shown == {compute_clip_id(cleaned.parent / "clean" / f"c{n}.mp4") for n in (0, 2)}


def test_a_pair_is_shown_without_watermarks_where_both_clips_have_such_a_copy(
    start, cleaned: Path
) -> None:
    run = start(protocol="preference", benchmark=cleaned, condition=BOTH)
    evaluate(run)
    assert [score.scorecard.n_questions for score in score_run(run)] == [4, 1]


def test_a_copy_that_cannot_be_read_fails_in_its_own_cell_alone(start, cleaned: Path) -> None:
    (cleaned.parent / "clean" / "c2.mp4").write_bytes(b"no video")
    run = start(benchmark=cleaned, condition=BOTH)
    outcome = evaluate(run)
    assert outcome.unreadable == {"format-refused": 1}
    kept, removed = score_run(run)
    assert dict(kept.scorecard.failures) == {}
    assert (removed.scorecard.n_questions, removed.scorecard.n_answered) == (2, 1)


def test_watermarks_that_nobody_removed_are_refused(start) -> None:
    with pytest.raises(InvalidSettingError, match="no clip of the benchmark has a copy"):
        evaluate(start(condition=BOTH))


def test_a_cap_on_pixels_is_kept_and_told_and_keys_of_before_stay(start, server) -> None:
    capped = start(model=server.model, limit=1, condition=[{"max_pixels": 1024}])
    evaluate(capped)
    (row,) = capped.answers.rows()
    assert row["condition"].endswith("prompt=paper max_pixels=1024")
    parts = server.asked[0]["messages"][-1]["content"]
    shown = next(part["image_url"]["url"] for part in parts if part["type"] == "image_url")
    with Image.open(io.BytesIO(b64decode(shown.partition(",")[2]))) as picture:
        assert picture.size == (39, 26)
    before = "sampling=uniform-8 audio=off watermark=kept thinking=default prompt=paper"
    assert str(Condition()) == before
    assert "max_pixels" not in start().recipe.stored()["condition"][0]
