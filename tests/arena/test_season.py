"""A season is played by its recipe alone: clips made once, questions asked once, and every gap told."""

import json
import shutil
from collections.abc import Callable
from email.message import Message
from pathlib import Path

import pytest

from arena.seasons import N_SCENES, Stadium, write_benchmark, write_clips
from chat import Reply, says, serve_chat
from unreel.arena.answers.answer_table import ANSWERED_GENERATED, ANSWERED_REAL, NOBODY, SILENT
from unreel.arena.answers.season_answers import read_season_answers, read_season_clips
from unreel.arena.run.job import forecast_season
from unreel.arena.season.folder import read_season
from unreel.arena.season.scenes import assign_scene_file_names
from unreel.core.errors import InvalidSettingError, UnreelError

PRICES = """
[models."compatible/tiny"]
input_usd_per_million = 1
output_usd_per_million = 0
"""
FLOORS = ("coin", "always-real", "metadata", "motion")


@pytest.fixture(scope="session")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark, what two creators made elsewhere, and what one reviewer said once."""
    root = tmp_path_factory.mktemp("grounds")
    write_benchmark(root / "bench")
    write_clips(root / "wan")
    write_clips(root / "ltx", seed=80, n_frames=16)
    said = {f"real-{n}": 1 for n in range(N_SCENES)} | {f"Sora-{n}": n % 2 for n in range(N_SCENES)}
    said |= {f"Wan/image+text/scene-{n}": 0 for n in range(N_SCENES - 1)}
    lines = [{"name": name, "text": f"<answer>{side}</answer>"} for name, side in said.items()]
    lines.append({"name": f"Wan/image+text/scene-{N_SCENES - 1}", "text": "who knows"})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (root / "said.jsonl").write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def stadium(grounds: Path, tmp_path: Path) -> Stadium:
    """Two creators before one reviewer, without floors."""
    for name in ("bench", "wan", "ltx", "said.jsonl"):
        (tmp_path / name).symlink_to(grounds / name)
    return Stadium(
        tmp_path,
        creators=[
            {"name": "Wan", "kind": "folder", "folder": "wan"},
            {"name": "Sora", "kind": "frozen"},
        ],
        reviewers=[{"model": "recorded", "recorded": "said.jsonl", "title": "Ann"}],
        head={"floors": False},
    )


def test_a_season_makes_what_is_missing_and_asks_everybody_about_everything(
    stadium: Stadium,
) -> None:
    stadium.head = {}
    outcome = stadium.play()
    assert [(turn.title, turn.done) for turn in outcome.creators] == [
        ("Wan", N_SCENES),
        ("Sora", 0),
    ]
    assert not outcome.n_failed
    assert stadium.answers() == dict.fromkeys(("Ann", *FLOORS), 3 * N_SCENES)
    again = stadium.play()
    assert [turn.done for turn in (*again.creators, *again.reviewers)] == [0] * 7
    # A creator that comes later changes nothing of what floors learned: its clips alone are asked about.
    stadium.creators.append({"name": "LTX", "kind": "folder", "folder": "ltx"})
    later = stadium.play(only=frozenset({"LTX", *FLOORS}))
    assert [turn.done for turn in (*later.creators, *later.reviewers)] == [0, 4, 4, 4, 4, 4]
    assert stadium.answers() == {"Ann": 12} | dict.fromkeys(FLOORS, 16)
    assert read_season_answers(stadium.folder.path).floors == {*FLOORS}


def test_a_season_plays_locate(stadium: Stadium) -> None:
    stadium.head = {"protocol": "locate", "floors": False}
    stadium.reviewers = [{"model": "always-real"}, {"model": "always-generated"}]
    assert not stadium.play().n_failed
    play = read_season_answers(stadium.folder.path)
    said = {play.reviewers[at]: set() for at in play.reviewer.tolist()}
    for at, answer in zip(play.reviewer.tolist(), play.answer_codes.tolist(), strict=True):
        said[play.reviewers[at]].add(answer)
    assert said == {"always-real": {ANSWERED_REAL}, "always-generated": {ANSWERED_GENERATED}}


def test_a_play_tells_whose_each_clip_is_and_what_was_said(stadium: Stadium) -> None:
    stadium.play()
    play = read_season_answers(stadium.folder.path)
    assert play.clips.creators == ("Sora", "Wan/image+text")
    assert play.clips.scenes == tuple(f"scene-{n}" for n in range(N_SCENES))
    assert (play.clips.creator == NOBODY).sum() == N_SCENES
    assert (play.reviewers, play.floors) == (("Ann",), frozenset())
    said = dict(
        zip((play.clips.names[at] for at in play.clip), play.answer_codes.tolist(), strict=True)
    )
    assert {said[f"real-{n}"] for n in range(N_SCENES)} == {ANSWERED_REAL}
    assert [said[f"Sora-{n}"] for n in range(N_SCENES)] == [ANSWERED_GENERATED, ANSWERED_REAL] * 2
    made = [said[f"Wan/image+text/scene-{n}"] for n in range(N_SCENES)]
    assert made == [ANSWERED_GENERATED] * 3 + [SILENT]
    assert play.clips.nuisances == ("length", "resolution", "sound")
    assert (play.clips.nuisance[:, 2] == 0).all()


def test_a_creator_and_a_reviewer_that_come_later_cost_only_their_own_cells(
    stadium: Stadium,
) -> None:
    stadium.play()
    stadium.creators.append({"name": "LTX", "kind": "folder", "folder": "ltx"})
    stadium.reviewers.append({"model": "always-generated"})
    foreseen = forecast_season(stadium.job())
    assert [(due.title, due.n_due) for due in foreseen.creators] == [
        ("Wan", 0),
        ("Sora", 0),
        ("LTX", 4),
    ]
    assert [(due.title, due.n_due) for due in foreseen.reviewers] == [
        ("Ann", 4),
        ("always-generated", 16),
    ]
    outcome = stadium.play()
    assert [turn.done for turn in outcome.creators] == [0, 0, 4]
    ann, cynic = outcome.reviewers
    assert (ann.done, dict(ann.failures)) == (0, {"not-recorded": 4})
    assert (cynic.done, dict(cynic.failures)) == (16, {})


def test_no_question_is_foreseen_about_a_clip_that_could_not_be_made(stadium: Stadium) -> None:
    stadium.creators[0]["settings"] = ["text", "image"]
    (stadium.root / "wan").unlink()
    shutil.copytree((stadium.root / "bench").resolve().parent / "wan", stadium.root / "wan")
    for number in range(N_SCENES):
        file = stadium.root / "wan" / f"scene-{number}.mp4"
        file.rename(file.with_name(f"scene-{number}-text.mp4"))
    stadium.play()
    foreseen = forecast_season(stadium.job())
    wan, _ = foreseen.creators
    assert (wan.n_due, wan.n_done, wan.n_failed) == (0, N_SCENES, N_SCENES)
    assert foreseen.n_questions == 0
    again = forecast_season(stadium.job(retry_failed=frozenset({"not-a-file"})))
    assert (again.creators[0].n_due, again.n_questions) == (N_SCENES, N_SCENES)


def test_who_is_taken_out_keeps_its_answers_and_is_asked_about_no_more(stadium: Stadium) -> None:
    stadium.play()
    wan, sora = stadium.creators
    stadium.creators, stadium.reviewers = [sora], [{"model": "always-generated"}]
    outcome = stadium.play()
    assert [turn.done for turn in outcome.reviewers] == [8]
    retired = [each.title for each in stadium.folder.entrants().creators if each.retired]
    assert retired == ["Wan"]
    play = read_season_answers(stadium.folder.path)
    assert play.clips.creators == ("Sora",)
    assert play.reviewers == ("Ann", "always-generated")
    everything = read_season_clips(stadium.folder, retired=True)
    assert read_season_answers(stadium.folder.path, clips=everything).clips.creators == (
        "Sora",
        "Wan/image+text",
    )
    stadium.creators = [wan, sora]
    assert [turn.done for turn in stadium.play().reviewers] == [4]


def test_a_changed_creator_under_an_old_title_is_another_row(stadium: Stadium) -> None:
    stadium.play()
    stadium.creators[0] = {"name": "Wan", "kind": "folder", "folder": "ltx", "version": "2"}
    stadium.play()
    everything = read_season_clips(stadium.folder, retired=True)
    shown = [name for name in everything.creators if name.startswith("Wan (")]
    assert len(shown) == 2


def test_a_scene_without_a_clip_is_a_failure_with_its_reason_and_asked_for_once(
    stadium: Stadium, grounds: Path
) -> None:
    (stadium.root / "wan").unlink()
    shutil.copytree(grounds / "wan", stadium.root / "wan")
    (stadium.root / "wan" / "scene-1.mp4").unlink()
    (stadium.root / "wan" / "scene-2.mp4").write_bytes(b"no video at all")
    outcome = stadium.play()
    assert dict(outcome.creators[0].failures) == {"not-a-file": 1, "format-refused": 1}
    assert read_season_answers(stadium.folder.path).clips.names.count("Wan/image+text/scene-1") == 0
    second = stadium.play()
    (wan, _), (ann,) = second.creators, second.reviewers
    assert (wan.done, dict(wan.failures), wan.failed_before, wan.already) == (0, {}, 2, 2)
    assert wan.missing_files == ("scene-1.mp4",)
    assert (ann.already, ann.failed_before) == (10, 0)
    assert second.n_failed == 2
    shutil.copy(grounds / "wan" / "scene-1.mp4", stadium.root / "wan" / "scene-1.mp4")
    again = stadium.play(retry_failed=frozenset({"not-a-file"}))
    assert (again.creators[0].done, again.reviewers[0].done) == (1, 1)


def test_nobody_is_asked_while_a_folder_holds_none_of_its_files(stadium: Stadium) -> None:
    (stadium.root / "empty").mkdir()
    stadium.creators.insert(0, {"name": "LTX", "kind": "folder", "folder": "empty"})
    (ltx, *_) = forecast_season(stadium.job()).creators
    assert ltx.missing_files == tuple(f"scene-{n}.mp4" for n in range(N_SCENES))
    for _ in range(2):
        outcome = stadium.play()
        ltx, wan, _ = outcome.creators
        assert "none of the 4 expected files" in ltx.problem
        assert ltx.missing_files == tuple(f"scene-{n}.mp4" for n in range(N_SCENES))
        assert (wan.done, outcome.reviewers, outcome.is_stopped) == (0, (), True)
        assert outcome.n_failed
    shutil.copytree(stadium.root / "ltx", stadium.root / "empty", dirs_exist_ok=True)
    assert [turn.done for turn in stadium.play().creators] == [4, 4, 0]


def test_nobody_is_asked_while_all_clips_of_a_creator_are_unusable(stadium: Stadium) -> None:
    (stadium.root / "broken").mkdir()
    for number in range(N_SCENES):
        (stadium.root / "broken" / f"scene-{number}.mp4").write_bytes(b"no video at all")
    stadium.creators[0]["folder"] = "broken"
    first, second = stadium.play(), stadium.play()
    assert dict(first.creators[0].failures) == {"format-refused": N_SCENES}
    assert (second.creators[0].already, second.creators[0].n_failed) == (0, N_SCENES)
    for outcome in (first, second):
        assert "none of its 4 clips can be used (format-refused" in outcome.creators[0].problem
        assert outcome.reviewers == ()
        assert outcome.n_failed == N_SCENES + 1
    assert not list((stadium.folder.path / "runs").glob("*/answers.lance"))


def test_answers_that_failed_before_are_counted_as_failed(stadium: Stadium) -> None:
    stadium.creators = [{"name": "Veo", "kind": "frozen"}]
    assert dict(stadium.play().reviewers[0].failures) == {"not-recorded": N_SCENES}
    (ann,) = stadium.play().reviewers
    assert (ann.done, dict(ann.failures), ann.failed_before) == (0, {}, N_SCENES)
    assert ann.already == N_SCENES


def test_scenes_that_would_share_a_file_name_keep_what_tells_them_apart() -> None:
    scenes = ("a/x.mp4", "b/x.mp4", "clips/y.MP4", "z", "w.mp4", "w", "v1.5")
    assert assign_scene_file_names(scenes) == {
        "a/x.mp4": "a/x",
        "b/x.mp4": "b/x",
        "clips/y.MP4": "y",
        "z": "z",
        "w.mp4": "w.mp4",
        "w": "w",
        "v1.5": "v1.5",
    }


def test_a_limit_plays_some_scenes_and_the_same_ones_each_time(stadium: Stadium) -> None:
    stadium.head["limit"] = 2
    stadium.play()
    first = read_season_clips(stadium.folder).scenes
    stadium.forget()
    stadium.play()
    assert read_season_clips(stadium.folder).scenes == first
    assert len(first) == 2


def test_another_benchmark_than_the_one_named_is_refused(stadium: Stadium, grounds: Path) -> None:
    stadium.head["digest"] = "1-" + "0" * 64
    with pytest.raises(InvalidSettingError, match="another benchmark"):
        stadium.play()
    stadium.head["digest"] = ""
    with pytest.raises(InvalidSettingError, match="arena plan --pin"):
        stadium.play()
    assert not stadium.folder.path.exists()


def test_a_floor_that_cannot_learn_is_told_of_and_takes_no_part(stadium: Stadium) -> None:
    lines = (stadium.root / "bench" / "metadata.jsonl").read_text(encoding="utf-8").splitlines()
    real = [line for line in lines if '"label": "real"' in line]
    bench = stadium.root / "one-sided"
    bench.mkdir()
    shutil.copytree(stadium.root / "bench" / "clips", bench / "clips")
    (bench / "metadata.jsonl").write_text("\n".join(real) + "\n", encoding="utf-8")
    stadium.head = {"benchmark": "one-sided"}
    del stadium.creators[1]
    outcome = stadium.play()
    problems = {turn.title: turn.problem for turn in outcome.reviewers if turn.problem}
    assert sorted(problems) == ["metadata", "motion"]
    assert "cannot be fitted" in problems["metadata"]
    assert read_season_answers(stadium.folder.path).reviewers == ("Ann", "always-real", "coin")


def test_a_budget_of_questions_is_spent_by_a_plan_that_lies_in_the_folder(stadium: Stadium) -> None:
    stadium.sections["budget"] = {"max_questions": 7}
    assert sum(turn.done for turn in stadium.play().reviewers) == 7
    plan = json.loads((stadium.folder.path / "plan.json").read_text(encoding="utf-8"))
    assert (plan["n_due"], plan["n_chosen"]) == (12, 7)
    assert sum(turn.done for turn in stadium.play().reviewers) == 0
    stadium.sections["budget"] = {"max_questions": 12}
    assert sum(turn.done for turn in stadium.play().reviewers) == 5
    assert not (stadium.folder.path / "plan.json").exists()


def test_a_budget_of_clips_ends_the_making(stadium: Stadium) -> None:
    stadium.sections["budget"] = {"max_clips": 3}
    assert stadium.play().creators[0].done == 3
    assert stadium.play().creators[0].done == 0
    stadium.sections["budget"] = {"max_clips": 4}
    assert stadium.play().creators[0].done == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.head.update(benchmrk="x"), "benchmark"),
        (lambda s: s.head.update(protocol="realism"), "neither real nor generated"),
        (lambda s: s.reviewers.clear(), "needs a reviewer or the baselines"),
        (lambda s: s.reviewers.append(s.reviewers[0]), "twice"),
        (lambda s: s.reviewers[0].update(title="two\nlines"), "does not fit on a line"),
        (lambda s: s.creators.append(s.creators[0]), "twice"),
        (lambda s: s.conditions.extend([{"title": "a"}, {"title": "a"}]), "twice"),
        (lambda s: s.sections.update(budget={"max_question": 3}), "max_questions"),
        (lambda s: s.creators[0].update(kind="foldr"), "folder"),
    ],
)
def test_a_wrong_season_is_refused_with_what_to_write(
    stadium: Stadium, change: Callable[[Stadium], object], words: str
) -> None:
    change(stadium)
    stadium.write(pin=False)
    with pytest.raises(UnreelError, match=words):
        read_season(stadium.file)


def test_hostile_names_stay_names(stadium: Stadium) -> None:
    scenes = ("../../../etc/passwd", "a\nb\x1b[2J", "long " * 400, "<script>alert(1)</script>")
    lines = (stadium.root / "bench" / "metadata.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    bench = stadium.root / "hostile"
    bench.mkdir()
    shutil.copytree(stadium.root / "bench" / "clips", bench / "clips")
    for row in rows:
        row["group"] = scenes[int(row["group"][-1])]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (bench / "metadata.jsonl").write_text(text, encoding="utf-8")
    stadium.head["benchmark"] = "hostile"
    stadium.creators = [
        {"name": "../Wan", "kind": "folder", "folder": "hostile-wan"},
        {"name": "Sora", "kind": "frozen"},
    ]
    (stadium.root / "hostile-wan").mkdir()
    shutil.copy(stadium.root / "wan" / "scene-0.mp4", stadium.root / "hostile-wan" / "passwd.mp4")
    stadium.reviewers[0]["title"] = "../../Ann"
    outcome = stadium.play()
    assert dict(outcome.creators[0].failures) == {"not-a-file": N_SCENES - 1}
    assert outcome.reviewers[0].done == 2 * N_SCENES
    assert set(read_season_answers(stadium.folder).clips.scenes) == {
        scene.strip() for scene in scenes
    }
    (run,) = (stadium.folder.path / "runs").iterdir()
    assert run.parent.parent == stadium.folder.path
    assert not (stadium.root / "Ann").exists()


def test_two_real_clips_of_one_scene_are_both_played_and_briefed_once(stadium: Stadium) -> None:
    bench = stadium.root / "doubled"
    bench.mkdir()
    shutil.copytree(stadium.root / "bench" / "clips", bench / "clips")
    lines = (stadium.root / "bench" / "metadata.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    for row in rows:
        row["group"] = f"scene-{int(row['group'][-1]) // 2}"
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (bench / "metadata.jsonl").write_text(text, encoding="utf-8")
    stadium.head["benchmark"] = "doubled"
    outcome = stadium.play()
    assert outcome.creators[0].done == 2
    lineup = read_season_clips(stadium.folder)
    assert len(lineup.scenes) == 2
    assert (lineup.creator == NOBODY).sum() == N_SCENES


def test_a_damaged_season_says_what_to_do(stadium: Stadium) -> None:
    stadium.play()
    controls = stadium.folder.set / "controls.json"
    controls.write_text("[", encoding="utf-8")
    with pytest.raises(UnreelError, match="rewrites the file"):
        read_season_answers(stadium.folder)
    stadium.play()
    assert read_season_answers(stadium.folder).clips.controls == ()
    entrants = stadium.folder.path / "entrants.json"
    entrants.write_text("{}}", encoding="utf-8")
    with pytest.raises(UnreelError, match="Move it away"):
        stadium.play()


def test_a_budget_of_money_holds_for_servers_whose_price_is_known(stadium: Stadium) -> None:
    (stadium.root / "prices.toml").write_text(PRICES, encoding="utf-8")
    asked: list[bytes] = []

    def reply(body: bytes, _headers: Message) -> Reply:
        asked.append(body)
        return says("<answer>0</answer>", prompt_tokens=1_000_000)

    with serve_chat(reply) as port:
        model = f"compatible/tiny@http://127.0.0.1:{port}/v1"
        stadium.reviewers = [
            {"model": model, "title": "Tiny", "prices": "prices.toml", "max_connections": 1}
        ]
        stadium.sections["budget"] = {"max_cost_usd": 3}
        stadium.play()
        n_first = len(asked)
        assert 0 < n_first < 3 * N_SCENES
        stopped = stadium.play().reviewers[0]
        assert len(asked) == n_first
        assert "all of it is spent" in stopped.problem
        stadium.sections["budget"] = {"max_cost_usd": 1000}
        stadium.play()
        assert len(asked) == 3 * N_SCENES
