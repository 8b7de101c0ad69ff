"""A season that is entered, played, watched and left, as people type it."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance")

from arena.entrants import creator, write_entry, write_made, write_season
from unreel.arena.fairness.holdout import (
    PROMISE,
    hash_holdout_secret,
    read_or_create_holdout_secret,
)
from unreel.arena.submission.entry import read_entry_file
from unreel.arena.submission.season_log import LOG
from unreel.core.errors import InvalidSettingError
from warm import Warm

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


@dataclass(frozen=True, slots=True)
class Played:
    """A season that was played, and who types commands about it."""

    root: Path
    warm: Warm

    def type(self, *words: object) -> subprocess.CompletedProcess[str]:
        return self.warm.run("arena", *words, cwd=self.root)

    def json(self, *words: object) -> Any:
        done = self.type(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, warm: Warm) -> Played:
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
    entered = Played(root, warm)
    found = entered.json("submit", "season.toml", "entry.toml", "--trusted")
    assert found["state"] == "accepted"
    done = entered.type("run", "season.toml", "--trusted")
    assert done.returncode in {0, 1}, done.stderr  # what was not recorded is a failure
    return entered


def test_what_was_accepted_is_played_and_ranked(played: Played) -> None:
    told = played.json("rank", "season.toml", "--resamples", 100)
    rows = {row["name"] for row in told["standings"][0]["creators"]}
    assert {"House/image+text", "Ours/image+text"} <= rows
    states = [event["state"] for event in played.json("log", "season.toml")["events"]]
    assert states == ["noted", "submitted", "checked", "accepted", "played"]


def test_the_log_promises_the_secret_before_anything_is_played(played: Played) -> None:
    first = played.json("log", "season.toml")["events"][0]
    secret = read_or_create_holdout_secret(played.root / "seasons" / "spring")
    assert first["reasons"] == [f"{PROMISE} {hash_holdout_secret(secret)}"]


def test_the_log_is_told_to_people_with_its_last_hash(played: Played) -> None:
    head = played.json("log", "season.toml")["head"]
    done = played.type("log", "season.toml", "--head", head)
    assert done.returncode == 0
    assert head in done.stderr
    assert "Blue" in done.stdout


def test_an_edited_log_is_told_and_nothing_is_played_on(played: Played, tmp_path: Path) -> None:
    log = played.root / "seasons" / "spring" / LOG
    before = log.read_bytes()
    log.write_bytes(before.replace(b"Blue", b"Rosy"))
    try:
        assert played.type("log", "season.toml").returncode == 1
        done = played.type("run", "season.toml", "--trusted")
        assert done.returncode == 2
        assert "Put the log back" in done.stderr
    finally:
        log.write_bytes(before)


def test_ablations_are_told_for_conditions_and_leanings(played: Played) -> None:
    told = played.json("ablations", "season.toml")
    knobs = {each["knob"] for each in told["ablations"]}
    assert knobs == {"sampling"}
    stern = next(each for each in told["leanings"] if each["reviewer"] == "Stern")
    assert stern["said_real"]["value"] == 0
    done = played.type("ablations", "season.toml", "--format", "csv")
    assert done.stdout.startswith("what,first,second,reviewer")


def test_watching_tells_who_is_alike_and_ends_with_1_where_something_is(played: Played) -> None:
    told = played.json("watch", "season.toml", "--clips", "--trusted")
    assert told["n_suspected"] == 0
    assert [each["condition"] for each in told["conditions"]] == ["plain", "more frames"]
    assert told["conditions"][0]["hidden"]


def test_canaries_are_real_clips_and_always_the_same(played: Played) -> None:
    first = played.json("watch", "season.toml", "--canaries")
    assert len(first) == 2
    assert set(first.values()) == {"generated"}
    assert all("real" in name for name in first)
    assert played.json("watch", "season.toml", "--canaries") == first


def test_a_refusal_ends_with_1_and_says_what_to_mend(played: Played) -> None:
    write_entry(played.root, creator("Bare", folder="ours"), name="bare", licence="", team="Red")
    done = played.type("submit", "season.toml", "bare.toml", "--trusted")
    assert done.returncode == 1
    assert "refuses: licence" in done.stderr
    assert "refuses: identity" in done.stderr
    assert done.stdout == "refused\n"


ENTRY = """
team = "Green"
licence = "CC0"
statement = "A program."
[reviewer]
title = "Program"
model = "command:green"
command = ["/bin/sh", "own/judge.sh"]
"""


def test_the_program_of_an_entry_is_given_files_of_the_entry_alone(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "judge.sh").write_text("")
    (tmp_path / "entry.toml").write_text(ENTRY)
    assert read_entry_file(tmp_path / "entry.toml").recipe.title == "Program"
    (tmp_path / "own" / "judge.sh").unlink()
    (tmp_path / "own" / "judge.sh").symlink_to("/etc/passwd")
    with pytest.raises(InvalidSettingError, match="outside the entry's folder"):
        read_entry_file(tmp_path / "entry.toml")
    (tmp_path / "entry.toml").write_text(ENTRY.replace("own/judge.sh", "/etc/passwd"))
    with pytest.raises(InvalidSettingError, match="outside the entry's folder"):
        read_entry_file(tmp_path / "entry.toml")


def test_the_program_of_an_entry_is_named_before_it_runs(played: Played) -> None:
    (played.root / "own").mkdir()
    (played.root / "own" / "judge.sh").write_text("echo '{\"score\": 0.5}'")
    (played.root / "green.toml").write_text(ENTRY)
    done = played.type("submit", "season.toml", "green.toml")
    lines = done.stderr.splitlines()
    (named,) = [n for n, line in enumerate(lines) if line.startswith("runs /bin/sh ")]
    assert "own/judge.sh as command:green" in lines[named]
    (ended,) = [n for n, line in enumerate(lines) if line.startswith("Program is accepted")]
    assert named < ended


def test_asking_wrongly_ends_with_2(played: Played) -> None:
    (played.root / "wrong.toml").write_text('team = "Blue"\nlicense = "x"\n', encoding="utf-8")
    for words in (("submit", "season.toml", "wrong.toml"), ("withdraw", "season.toml", "Nobody")):
        done = played.type(*words)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
    assert "licence" in played.type("submit", "season.toml", "wrong.toml").stderr


def test_who_leaves_stays_on_the_boards(played: Played) -> None:
    done = played.type("withdraw", "season.toml", "Ours", "--reason", "a better one comes")
    assert done.stdout == "withdrawn\n"
    played.type("run", "season.toml", "--trusted")
    told = played.json("rank", "season.toml", "--resamples", 100)
    assert "Ours" in told["retired"]
    assert "Ours/image+text" in {row["name"] for row in told["standings"][0]["creators"]}
