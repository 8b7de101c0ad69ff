"""Runs from benchmark to scorecard: asked once, kept, scored without asking again."""

import json
import os
import shutil
from pathlib import Path

import pytest

from synthesise import ClipRecipe, synthesise
from unreel.core.errors import InvalidSettingError, MachineError
from unreel.core.estimate import Estimate, Unmeasured

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from unreel.evaluation.run_job import evaluate
from unreel.evaluation.scoring import score_run


def rows_of(run) -> dict[str, dict]:
    return {row["key"]: row for row in run.answers.rows()}


def test_every_clip_is_asked_about_once_and_never_again(start, server) -> None:
    run = start(model=server.model)
    first = evaluate(run)
    assert (first.answers.done, first.answers.failed) == (8, 0)
    assert len(server.asked) == 8
    again = evaluate(run)
    assert (again.answers.already, again.answers.done) == (8, 0)
    assert len(server.asked) == 8


def test_the_server_sees_eight_frames_and_the_papers_prompt(start, server) -> None:
    evaluate(start(model=server.model, limit=1))
    parts = server.asked[0]["messages"][-1]["content"]
    assert sum(part["type"] == "image_url" for part in parts) == 8
    assert "determine if the video is real or fake" in parts[0]["text"]


def test_an_answer_keeps_its_cost_and_what_was_shown(start, server) -> None:
    run = start(model=server.model, limit=1)
    evaluate(run)
    (row,) = rows_of(run).values()
    assert (row["input_tokens"], row["output_tokens"]) == (100, 10)
    assert row["latency_us"] > 0
    (shown,) = json.loads(row["notes"])["frames"]
    assert [index for index, _ in shown] == [0, 2, 3, 5, 6, 8, 9, 11]
    assert shown[1] == [2, "1/12"]


def test_a_server_that_refuses_everything_leaves_no_accuracy(start, server) -> None:
    server.status = 403
    run = start(model=server.model, deadline_s=20)
    evaluate(run)
    (score,) = score_run(run)
    card = score.scorecard
    assert (card.n_questions, card.n_answered) == (8, 0)
    assert sum(card.failures.values()) == 8
    assert isinstance(card["fake-accuracy"], Unmeasured)


def test_a_rejected_key_ends_the_run_in_the_servers_words_and_costs_no_row(start, server) -> None:
    server.status = 401
    run = start(model=server.model, max_connections=1)
    with pytest.raises(MachineError, match=r"key is rejected.*status 401.*Run the same command"):
        evaluate(run)
    assert len(server.asked) == 1
    server.status = 200
    assert evaluate(run).answers.done == 8


def test_failures_are_asked_again_only_on_demand(start, server) -> None:
    server.status = 400
    run = start(model=server.model)
    evaluate(run)
    n_asked = len(server.asked)
    server.status = 200
    assert evaluate(run).answers.already == 8
    assert len(server.asked) == n_asked
    reasons = set(run.answers.failures())
    assert evaluate(run, retry_failed=reasons).answers.done == 8
    assert len(rows_of(run)) == 8


def test_the_key_is_sent_and_never_stored(start, server, monkeypatch) -> None:
    secret = "sk-very-secret-0123456789"
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", secret)
    monkeypatch.setenv("UNREEL_KEY_HOSTS", f"127.0.0.1:{server.port}")
    run = start(model=server.model, limit=2)
    evaluate(run)
    assert server.keys == {f"Bearer {secret}"}
    stored = [path for path in run.place.path.rglob("*") if path.is_file()]
    assert stored
    assert all(secret.encode() not in path.read_bytes() for path in stored)


def test_several_conditions_are_asked_and_scored_apart(start, server) -> None:
    conditions = [{"sampling": "uniform-4"}, {"prompt": "direct", "sampling": "paper-8"}]
    run = start(model=server.model, condition=conditions)
    assert evaluate(run).answers.done == 16
    scores = score_run(run)
    assert [score.condition.sampling for score in scores] == ["uniform-4", "paper-8"]
    assert [score.scorecard.n_questions for score in scores] == [8, 8]


def test_a_clip_that_cannot_be_read_is_a_failure_and_the_others_go_on(
    start, server, clips: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(clips.parent, tmp_path / "broken")
    (folder / "c0.mp4").write_bytes(b"no video at all")
    (folder / "c1.mp4").unlink()
    run = start(model=server.model, benchmark=folder / "manifest.csv")
    outcome = evaluate(run)
    assert outcome.answers.done == 6
    assert dict(outcome.unreadable) == {"format-refused": 1, "not-a-file": 1}
    (score,) = score_run(run)
    assert score.scorecard.n_questions == 8
    assert score.scorecard.failures == {"format-refused": 1, "not-a-file": 1}


def test_pairs_show_two_clips_in_a_balanced_order(start, server) -> None:
    server.text = "1"
    run = start(model=server.model, protocol="preference")
    assert evaluate(run).answers.done == 4
    (score,) = score_run(run)
    assert score.scorecard.n_answered == 4
    pooled = score.scorecard["pooled"]
    assert isinstance(pooled, Estimate)
    assert pooled.value == pytest.approx(50)


@pytest.mark.parametrize("floor", ["coin", "always-real", "always-generated", "metadata", "motion"])
def test_every_floor_answers_every_clip(start, floor: str) -> None:
    run = start(model=floor)
    outcome = evaluate(run)
    assert (outcome.answers.done, outcome.answers.failed) == (8, 0)
    (score,) = score_run(run)
    assert score.scorecard.n_answered == 8


def test_another_reviewer_does_not_write_into_the_same_run(start) -> None:
    evaluate(start(model="coin"))
    with pytest.raises(InvalidSettingError, match="contains a run of coin"):
        evaluate(start(model="always-real"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"sampling": "uniform-8"},
        {"condition": [{"sampling": "no-such-plan"}]},
        {"condition": [{"prompt": "no-such-prompt"}]},
        {"condition": []},
        {"protocol": "no-such-protocol"},
        {"limit": 0},
    ],
    ids=str,
)
def test_a_recipe_that_cannot_be_followed_is_refused(start, wrong) -> None:
    with pytest.raises((InvalidSettingError, LookupError)):
        start(**wrong)


def test_a_clip_without_the_truth_is_told_and_not_asked_about(
    start, clips: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(clips.parent, tmp_path / "rated")
    head, first, *others = (folder / "manifest.csv").read_text().splitlines()
    lines = [f"{head},score", f"{first},4", *(f"{line}," for line in others)]
    (folder / "manifest.csv").write_text("\n".join(lines))
    outcome = evaluate(start(protocol="realism", benchmark=folder / "manifest.csv"))
    assert outcome.answers.done == 1
    assert outcome.n_rejected == 7
    assert "no rating" in outcome.rejected[0].why


def test_a_clip_that_another_run_has_surveyed_is_not_opened_again(start, tmp_path: Path) -> None:
    table = tmp_path / "list.csv"
    film = tmp_path / "a.mp4"
    film.write_bytes(synthesise(ClipRecipe(n_frames=12)))
    table.write_text("file,label\na.mp4,real\n", encoding="utf-8")
    first, second, third = (start(out=out, benchmark=table) for out in ("one", "two", "three"))
    evaluate(first)
    was = film.stat()
    film.write_bytes(b"\0" * was.st_size)
    os.utime(film, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert evaluate(second, facts_table=first.clips).answers.done == 1
    assert evaluate(third).answers.done == 0
