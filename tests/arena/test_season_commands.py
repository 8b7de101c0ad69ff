"""`unreel arena plan`, `run` and `rank` as people type them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from arena.seasons import Stadium, write_benchmark, write_clips
from unreel.arena.run.job import DRIVER
from unreel.cli.main import unreel
from unreel.core.errors import UnreelError
from unreel.engine.writer_lock import build_writer_lock

N_SCENES = 3


@pytest.fixture(scope="module")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("grounds")
    write_benchmark(root / "bench", n_scenes=N_SCENES)
    write_clips(root / "wan", n_scenes=N_SCENES)
    return root


@pytest.fixture
def stadium(grounds: Path, tmp_path: Path) -> Stadium:
    for name in ("bench", "wan"):
        (tmp_path / name).symlink_to(grounds / name)
    wan = {"name": "Wan", "kind": "folder", "folder": "wan"}
    return Stadium(
        tmp_path,
        creators=[wan, {"name": "Sora", "kind": "frozen"}],
        reviewers=[{"model": "coin"}, {"model": "always-generated", "title": "Cynic"}],
        head={"floors": False},
    )


def typed(stadium: Stadium, word: str, *more: object) -> Result:
    words = ["arena", word, stadium.file, "--out", stadium.folder.path, *more]
    return CliRunner().invoke(unreel, [str(each) for each in words])


def test_a_season_is_pinned_counted_played_and_ranked(stadium: Stadium) -> None:
    stadium.write(pin=False)
    refused = typed(stadium, "run", "--trusted")
    assert isinstance(refused.exception, UnreelError)
    counted = typed(stadium, "plan", "--pin", "--json")
    assert counted.exit_code == 0, counted.output
    told = json.loads(counted.stdout)
    assert (told["n_clips_due"], told["n_questions_due"]) == (N_SCENES, 2 * 3 * N_SCENES)
    assert told["plan"]["scenes"] == [f"scene-{n}" for n in range(N_SCENES)]
    assert f'digest = "{told["plan"]["digest"]}"' in stadium.file.read_text(encoding="utf-8")
    played = typed(stadium, "run", "--trusted", "--json")
    assert played.exit_code == 0, played.output
    turns = json.loads(played.stdout)["reviewers"]
    assert [(turn["title"], turn["done"]) for turn in turns] == [("coin", 9), ("Cynic", 9)]
    ranked = typed(stadium, "rank", "--json", "--resamples", 100)
    (standings,) = json.loads(ranked.stdout)["standings"]
    assert [each["name"] for each in standings["creators"]] == ["Sora", "Wan/image+text"]
    table = typed(stadium, "rank", "--resamples", 100).stdout
    assert "Cynic" in table
    assert json.loads(typed(stadium, "run", "--dry-run", "--json").stdout)["n_questions_due"] == 0


def test_two_do_not_play_one_season_at_a_time(stadium: Stadium) -> None:
    stadium.write()
    stadium.folder.path.mkdir()
    with build_writer_lock(stadium.folder.place / DRIVER):
        refused = typed(stadium, "run", "--trusted")
    assert isinstance(refused.exception, UnreelError)
    assert not (stadium.folder.path / "made.lance").exists()


def test_missing_files_are_named_and_end_with_status_1_each_time(stadium: Stadium) -> None:
    stadium.creators[0]["folder"] = "empty"
    (stadium.root / "empty").mkdir()
    stadium.write()
    counted = typed(stadium, "plan")
    assert counted.exit_code == 0
    assert "Wan: warning: its folder lacks 3 files" in counted.stderr
    for _ in range(2):
        played = typed(stadium, "run", "--trusted")
        assert played.exit_code == 1
        assert "scene-0.mp4, scene-1.mp4, scene-2.mp4" in played.stderr
        assert "no question was sent" in played.stderr
    (stadium.root / "empty" / "scene-0.mp4").write_bytes(b"no video at all")
    for _ in range(2):
        played = typed(stadium, "run", "--trusted")
        assert played.exit_code == 1
        assert "none of its 3 clips can be used" in played.stderr
        assert "--retry-failed" in played.stderr
    for number in range(N_SCENES):
        source = stadium.root / "wan" / f"scene-{number}.mp4"
        (stadium.root / "empty" / source.name).write_bytes(source.read_bytes())
    assert typed(stadium, "run", "--trusted", "--retry-failed").exit_code == 0


def test_ablations_and_biases_are_printed(stadium: Stadium) -> None:
    stadium.conditions = [{"title": "plain"}, {"title": "more frames", "sampling": "uniform-12"}]
    stadium.write()
    assert typed(stadium, "run", "--trusted").exit_code == 0
    told = json.loads(typed(stadium, "ablations", "--json").stdout)
    assert {each["knob"] for each in told["ablations"]} == {"sampling"}
    assert "Cynic" in {each["reviewer"] for each in told["leanings"]}
    table = typed(stadium, "ablations", "--format", "csv").stdout
    assert table.startswith("what,first,second,reviewer")


def test_a_season_with_hidden_scenes_or_submitted_entries_is_refused(stadium: Stadium) -> None:
    stadium.sections = {"holdout": {"share": 0.2}}
    stadium._write({"name": "spring", "benchmark": "bench"})
    refused = typed(stadium, "run", "--trusted")
    assert isinstance(refused.exception, UnreelError)
    assert "holdout" in str(refused.exception)
    stadium.sections = {}
    stadium.write()
    (stadium.folder.path / "entries").mkdir(parents=True)
    (stadium.folder.path / "entries" / "ours.json").write_text("{}")
    refused = typed(stadium, "run", "--trusted")
    assert isinstance(refused.exception, UnreelError)
    assert "has submitted entries" in str(refused.exception)
    assert "season file" in str(refused.exception)
