"""`unreel report` as people type it."""

import json
from pathlib import Path

import pytest

from synthesise import ClipRecipe, synthesise

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra report: pip install 'unreel[report]'")


def test_runs_become_a_page_whose_path_is_printed(run, tmp_path: Path) -> None:
    for number, folder in enumerate(("real", "generated/Sora")):
        path = tmp_path / "bench" / folder / f"c{number}.mp4"
        path.parent.mkdir(parents=True)
        path.write_bytes(synthesise(ClipRecipe(n_frames=10, seed=number)))
    asked = ("eval", tmp_path / "bench", "--protocol", "reality", "--model", "always-real")
    assert run(*asked, "--trusted", "--out", "runs/a").returncode == 0
    done = run("report", "runs/a", "--out", "page", "--media", "copy")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "page/index.html"
    assert "2 clips, 2 answers" in done.stderr
    assert len(list((tmp_path / "page" / "media").iterdir())) == 2
    told = json.loads(run("report", "runs/a", "--media", "none", "--json").stdout)
    assert (told["page"], told["n_media"]) == ("report/index.html", 0)


def test_a_folder_without_a_run_is_refused(run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = run("report", "empty")
    assert done.returncode == 2
    assert "unreel eval" in done.stderr
    assert "Traceback" not in done.stderr
