"""A whole season: from its recipe to its boards, killed twice on the way, and joined by two who came late."""

import itertools
import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from arena.seasons import Stadium, write_benchmark, write_clips
from unreel.arena.answers.season_answers import read_season_answers
from unreel.arena.boards.ranking import rank_season_entrants
from unreel.arena.season.folder import SeasonFolder, read_season
from unreel.arena.season.scenes import open_season_benchmark
from unreel.asking.answer_table import ANSWERS
from unreel.cli.main import unreel
from unreel.core.judgement import Label
from unreel.engine.table import LanceTable

DRIVER = Path(__file__).with_name("season_driver.py")
N_SCENES = 3
SHARED_CREATORS = ("CogVideoX", "HunyuanVideo", "LTX", "Ovi", "Wan")
FOLDERS = ("wan", "ltx", "kling", "late")
DETECTOR = """
import json, os, sys
print(json.dumps({"score": 0.9 if os.path.getsize(sys.argv[1]) % 2 else 0.1}))
"""
FLOORS = ("coin", "always-real", "metadata", "motion")
pytestmark = pytest.mark.timeout(900)


def drive(stadium: Stadium, stop_at: str = "") -> list[str]:
    """The lines of a season that was played in a process of its own, to its end or to a kill -9 at `stop_at`."""
    command = [sys.executable, str(DRIVER), str(stadium.file), str(stadium.folder.path), stop_at]
    told: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            told.append(line.rstrip("\n"))
            if line.startswith("stopped"):
                process.send_signal(signal.SIGKILL)
    assert process.returncode == (-signal.SIGKILL if stop_at else 0), told
    return told


def turns(told: list[str]) -> dict[str, int]:
    """Clips made and questions put, failures among them, by entrant."""
    found = [line.split(maxsplit=3) for line in told if line.startswith("turn")]
    return {title: int(done) + int(failed) for _, done, failed, title in found}


def rows_of(folder: SeasonFolder) -> dict[str, dict[str, Any]]:
    """Every clip and answer of the season by its key; a key that is there twice is an error."""
    runs = [folder.run(each.folder) / "answers.lance" for each in folder.entrants().reviewers]
    tables = [folder.made, *(LanceTable(place, ANSWERS) for place in runs)]
    there = [table for table in tables if table.exists()]
    return {row["key"]: row for table in there for row in table.rows()}


def meaning(rows: dict[str, dict[str, Any]]) -> dict[str, tuple[object, ...]]:
    """What must be the same however often a season was killed."""
    told = ("reviewer", "clip", "condition", "text", "failure_reason", "sha256", "name", "scene")
    return {key: tuple(row.get(name) for name in told) for key, row in rows.items()}


def require_boards(folder: SeasonFolder, *, n_creators: int, n_reviewers: int) -> None:
    play = read_season_answers(folder)
    standings = rank_season_entrants(play, seed=0, resamples=100)
    made = [each for each in standings.creators if each.kind == "creator"]
    assert len(made) == n_creators
    assert len(standings.reviewers) == n_reviewers
    assert {each.name for each in standings.reviewers if each.kind == "floor"} >= {*FLOORS}
    assert not any(each.lacks for each in standings.reviewers)
    site = folder.path.parent / "site"
    words = ["arena", "site", str(folder.path), "--out", str(site), "--resamples", "100"]
    written = CliRunner().invoke(unreel, words)
    assert written.exit_code == 0, written.output
    page = (site / "index.html").read_text(encoding="utf-8")
    assert [each.name for each in made if each.name.partition("/")[0] not in page] == []


def killed_twice_and_joined(stadium: Stadium, late: Stadium) -> None:
    """Play `stadium`, kill it in the making and in the asking, go on; then let `late` join."""
    stadium.write()
    drive(stadium, "made-written:2")
    after_first = rows_of(stadium.folder)
    drive(stadium, "answers-written:3")
    after_second = rows_of(stadium.folder)
    assert meaning(after_first).items() <= meaning(after_second).items()
    drive(stadium)
    whole = rows_of(stadium.folder)
    assert meaning(after_second).items() <= meaning(whole).items()
    assert all(row["attempt"] == 1 for row in whole.values())
    assert set(turns(drive(stadium)).values()) == {0}

    n_clips = len(read_season_answers(stadium.folder).clips.names)
    n_judges = len(stadium.folder.entrants().reviewers)
    late.write()
    asked = turns(drive(late))
    joined = rows_of(late.folder)
    assert meaning(whole).items() <= meaning(joined).items()
    n_new = len(read_season_answers(late.folder).clips.names) - n_clips
    assert n_new > 0
    new = {title: n for title, n in asked.items() if n}
    assert len(new) == 1 + n_judges + 1
    assert len(joined) - len(whole) == sum(new.values())
    assert sum(new.values()) == n_new + n_judges * n_new + (n_clips + n_new)


def join(stadium: Stadium) -> Stadium:
    """The same season with a creator and a reviewer more."""
    return replace(
        stadium,
        creators=[*stadium.creators, {"name": "late", "kind": "folder", "folder": "late"}],
        reviewers=[*stadium.reviewers, {"model": "always-generated"}],
    )


def write_answers(file: Path) -> None:
    """What Ann said once: she knows the real clips, and falls for every second one of the others."""
    said = {f"real-{n}": 1 for n in range(N_SCENES)}
    makers = [
        *(f"{name}/image+text/scene-" for name in FOLDERS),
        "recompressed/scene-",
        "Sora-",
        "Veo-",
    ]
    said |= {f"{maker}{n}": n % 2 for maker in makers for n in range(N_SCENES)}
    write_said(file, said)


def write_judges(root: Path) -> list[dict[str, Any]]:
    """Ann, and a program that goes by the size of the file."""
    (root / "detector.py").write_text(DETECTOR, encoding="utf-8")
    command = [sys.executable, "detector.py", "{clip}"]
    return [
        {"model": "recorded", "recorded": "said.jsonl", "title": "Ann"},
        {"model": "command:size", "command": command, "title": "program"},
    ]


def write_said(file: Path, said: dict[str, int]) -> None:
    """A file of recorded answers: 1 for real, 0 for generated, by the clip's name."""
    lines = [{"name": name, "text": f"<answer>{side}</answer>"} for name, side in said.items()]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.fixture
def synthesised(tmp_path: Path) -> Stadium:
    """Five creators, a control, and who says what floors cannot."""
    write_benchmark(tmp_path / "bench", n_scenes=N_SCENES)
    for seed, name in enumerate(FOLDERS):
        write_clips(tmp_path / name, n_scenes=N_SCENES, seed=100 + 10 * seed)
    write_answers(tmp_path / "said.jsonl")
    folders = [{"name": name, "kind": "folder", "folder": name} for name in FOLDERS[:3]]
    frozen = [{"name": name, "kind": "frozen"} for name in ("Sora", "Veo")]
    control = {"name": "recompressed", "kind": "degrade", "way": "recompressed"}
    return Stadium(
        tmp_path, creators=[*folders, control, *frozen], reviewers=write_judges(tmp_path)
    )


@pytest.mark.slow
def test_a_synthesised_season_survives_two_kills_and_late_comers_cost_their_cells_alone(
    synthesised: Stadium,
) -> None:
    late = join(synthesised)
    killed_twice_and_joined(synthesised, late)
    require_boards(late.folder, n_creators=6, n_reviewers=7)
    # The same season, undisturbed, comes to the same.
    calm = replace(late, out="calm")
    calm.write()
    drive(calm)
    assert meaning(rows_of(calm.folder)) == meaning(rows_of(late.folder))


def over_shared_clips(shared: Path, root: Path, *, limit: int | None) -> Stadium:
    """Five creators whose clips are shared, two controls, and answers that were recorded by file."""
    stadium = Stadium(
        root,
        creators=[
            *({"name": way, "kind": "degrade", "way": way} for way in ("recompressed", "scaled")),
            *({"name": name, "kind": "frozen"} for name in SHARED_CREATORS),
        ],
        reviewers=write_judges(root),
        head={"benchmark": str(shared / "clips" / "manifest.csv")},
    )
    if limit is not None:
        stadium.head["limit"] = limit
    stadium.write()
    scenery = open_season_benchmark(read_season(stadium.file))
    said = {entry.name: int(entry.label is Label.REAL) for entry in scenery.entries}
    for scene in scenery.scenes:
        said |= {f"recompressed/{scene}": 1, f"scaled/{scene}": 0, f"late/image+text/{scene}": 0}
    write_said(root / "said.jsonl", said)
    made = sorted((shared / "clips" / "generated").glob("*_pika_*"))
    (root / "late").mkdir()
    for scene, clip in zip(scenery.scenes, itertools.cycle(made), strict=False):
        shutil.copy(clip, root / "late" / f"{scene}.mp4")
    return stadium


@pytest.mark.slow
def test_a_season_over_shared_clips_survives_two_kills_and_late_comers_cost_their_cells_alone(
    shared: Path, tmp_path: Path
) -> None:
    stadium = over_shared_clips(shared, tmp_path, limit=2)
    late = join(stadium)
    killed_twice_and_joined(stadium, late)
    require_boards(late.folder, n_creators=6, n_reviewers=7)
