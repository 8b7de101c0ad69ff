"""A season that is entered, played, watched and left, as people type it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance")

from arena.entrants import creator, write_entry, write_made, write_season
from unreel.arena.hiding import PROMISE
from unreel.arena.holdout import open_secret, promise
from unreel.arena.log import LOG

N_SCENES = 6
SEASON = """
floors = false
[[reviewer]]
model = "always-generated"
title = "Stern"
[[reviewer]]
model = "recorded"
recorded = "answers.jsonl"
title = "Told"
[[condition]]
title = "plain"
[[condition]]
title = "more frames"
sampling = "uniform-12"
[holdout]
share = 0.25
canaries = 2
"""


def _type(root: Path, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from unreel.cli.main import main; main()", "arena"]
    return subprocess.run(
        [*command, *map(str, words)], check=False, capture_output=True, text=True, cwd=root
    )


def _json(root: Path, *words: object, status: int = 0) -> Any:
    done = _type(root, *words, "--json")
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A season with one entry that was accepted, and played."""
    root = tmp_path_factory.mktemp("arena")
    said = [{"name": f"real-{n}", "answer": "<answer>real</answer>"} for n in range(N_SCENES)]
    text = "".join(json.dumps(line) + "\n" for line in said)
    (root / "answers.jsonl").write_text(text, encoding="utf-8")
    season = write_season(root, n_scenes=N_SCENES)
    head = season.text.decode().partition("[[creator]]")
    floors, _, more = SEASON.strip().partition("\n")
    (root / "season.toml").write_text(
        f"{head[0]}{floors}\n[[creator]]{head[2]}{more}\n", encoding="utf-8"
    )
    write_made(root / "ours", n_scenes=N_SCENES)
    write_entry(root, creator())
    found = _json(root, "submit", "season.toml", "entry.toml", "--trusted")
    assert found["state"] == "accepted"
    done = _type(root, "run", "season.toml", "--trusted")
    assert done.returncode in {0, 1}, done.stderr  # what was not recorded is a failure
    return root


def test_what_was_accepted_is_played_and_ranked(played: Path) -> None:
    told = _json(played, "rank", "season.toml", "--resamples", 100)
    rows = {row["name"] for row in told["standings"][0]["creators"]}
    assert {"House/image+text", "Ours/image+text"} <= rows
    states = [event["state"] for event in _json(played, "log", "season.toml")["events"]]
    assert states == ["noted", "submitted", "checked", "accepted", "played"]


def test_the_log_promises_the_secret_before_anything_is_played(played: Path) -> None:
    first = _json(played, "log", "season.toml")["events"][0]
    secret = open_secret(played / "seasons" / "spring")
    assert first["reasons"] == [f"{PROMISE} {promise(secret)}"]


def test_the_log_is_told_to_people_with_its_last_hash(played: Path) -> None:
    head = _json(played, "log", "season.toml")["head"]
    done = _type(played, "log", "season.toml", "--head", head)
    assert done.returncode == 0
    assert head in done.stderr
    assert "Blue" in done.stdout


def test_an_edited_log_is_told_and_nothing_is_played_on(played: Path, tmp_path: Path) -> None:
    log = played / "seasons" / "spring" / LOG
    before = log.read_bytes()
    log.write_bytes(before.replace(b"Blue", b"Rosy"))
    try:
        assert _type(played, "log", "season.toml").returncode == 1
        done = _type(played, "run", "season.toml", "--trusted")
        assert done.returncode == 2
        assert "Put the log back" in done.stderr
    finally:
        log.write_bytes(before)


def test_ablations_are_told_for_conditions_and_leanings(played: Path) -> None:
    told = _json(played, "ablations", "season.toml")
    knobs = {each["knob"] for each in told["ablations"]}
    assert knobs == {"sampling"}
    stern = next(each for each in told["leanings"] if each["reviewer"] == "Stern")
    assert stern["said_real"]["value"] == 0
    done = _type(played, "ablations", "season.toml", "--format", "csv")
    assert done.stdout.startswith("what,first,second,reviewer")


def test_watching_tells_who_is_alike_and_ends_with_1_where_something_is(played: Path) -> None:
    told = _json(played, "watch", "season.toml", "--clips", "--trusted")
    assert told["n_suspected"] == 0
    assert [each["condition"] for each in told["conditions"]] == ["plain", "more frames"]
    assert told["conditions"][0]["hidden"]


def test_canaries_are_real_clips_and_always_the_same(played: Path) -> None:
    first = _json(played, "watch", "season.toml", "--canaries")
    assert len(first) == 2
    assert set(first.values()) == {"generated"}
    assert all("real" in name for name in first)
    assert _json(played, "watch", "season.toml", "--canaries") == first


def test_a_refusal_ends_with_1_and_says_what_to_mend(played: Path) -> None:
    write_entry(played, creator("Bare", folder="ours"), name="bare", licence="", team="Red")
    done = _type(played, "submit", "season.toml", "bare.toml", "--trusted")
    assert done.returncode == 1
    assert "refuses: licence" in done.stderr
    assert "refuses: identity" in done.stderr
    assert done.stdout == "refused\n"


def test_asking_wrongly_ends_with_2(played: Path) -> None:
    (played / "wrong.toml").write_text('team = "Blue"\nlicense = "x"\n', encoding="utf-8")
    for words in (("submit", "season.toml", "wrong.toml"), ("withdraw", "season.toml", "Nobody")):
        done = _type(played, *words)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
    assert "licence" in _type(played, "submit", "season.toml", "wrong.toml").stderr


def test_who_leaves_stays_on_the_boards(played: Path) -> None:
    done = _type(played, "withdraw", "season.toml", "Ours", "--reason", "a better one comes")
    assert done.stdout == "withdrawn\n"
    _type(played, "run", "season.toml", "--trusted")
    told = _json(played, "rank", "season.toml", "--resamples", 100)
    assert "Ours" in told["retired"]
    assert "Ours/image+text" in {row["name"] for row in told["standings"][0]["creators"]}
