"""`unreel annotate publish` as people type it: from a ledger to a report with people in it."""

import json
import shlex
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="needs the extra annotate: pip install 'unreel[annotate]'")
pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra report: pip install 'unreel[report]'")

from kept_campaign import CAMPAIGN, keep_campaign


def test_what_people_settled_on_is_asked_of_a_floor_and_reported_beside_them(
    run, tmp_path: Path
) -> None:
    kept = keep_campaign(tmp_path, n_films=2, n_made=3)
    typed = ("annotate", "publish", CAMPAIGN, "--ledger", kept.ledger)
    done = run(*typed, "--out", "out", "--json")
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert told["n_clips"] == 4
    assert [left["why"] for left in told["left_out"]] == ["not settled: no-common-fault"]
    assert "annotator-1" in {row["name"] for row in told["people"]}
    for protocol in ("trace", "realism"):
        asked = ("eval", "out", "--protocol", protocol, "--model", "always-generated", "--trusted")
        asked_of = asked if protocol == "trace" else (*asked[:5], "coin", "--trusted")
        done = run(*asked_of, "--out", f"runs/{protocol}")
        assert done.returncode == 0, done.stderr
    done = run("report", "runs/trace", "runs/realism", "--out", "page", "--media", "none")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert "people: majority" in page
    assert "against answers known beforehand" in page


def test_a_second_publishing_into_the_same_folder_is_refused(run, tmp_path: Path) -> None:
    kept = keep_campaign(tmp_path, n_films=2, n_made=0)
    typed = ("annotate", "publish", CAMPAIGN, "--ledger", kept.ledger, "--out", "out")
    first = run(*typed)
    assert first.returncode == 0, first.stderr
    told = first.stderr.rpartition("next: unreel ")[2]
    done = run(*shlex.split(told))
    assert done.returncode == 0, "the command that publish tells is one that works"
    again = run(*typed)
    assert again.returncode == 2
    assert "Name a new one" in again.stderr
    assert "Traceback" not in again.stderr


def test_an_unknown_campaign_names_the_nearest(run, tmp_path: Path) -> None:
    kept = keep_campaign(tmp_path, n_films=1, n_made=0)
    done = run("annotate", "publish", "sprung", "--ledger", kept.ledger, "--out", "out")
    assert done.returncode == 2
    assert CAMPAIGN in done.stderr


def test_a_benchmark_that_was_moved_is_named_again(run, tmp_path: Path) -> None:
    kept = keep_campaign(tmp_path, n_films=1, n_made=0)
    kept.bench.rename(tmp_path / "moved")
    typed = ("annotate", "publish", CAMPAIGN, "--ledger", kept.ledger, "--out", "out")
    gone = run(*typed)
    assert gone.returncode == 2
    assert "Check the path" in gone.stderr
    assert run(*typed, "--benchmark", "moved").returncode == 0


def test_a_campaign_becomes_a_page_whose_path_is_printed(run, tmp_path: Path) -> None:
    kept = keep_campaign(tmp_path, n_films=1, n_made=2)
    typed = ("annotate", "report", CAMPAIGN, "--ledger", kept.ledger, "--out", "page")
    done = run(*typed, "--copies", kept.bench)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "page/index.html"
    assert "3 of 3 tasks judged, 2 settled" in done.stderr
    page = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert "alpha-nominal" in page
    told = json.loads(run(*typed, "--copies", kept.bench, "--json").stdout)
    assert (told["n_disputed"], told["n_media"]) == (2, 2)
