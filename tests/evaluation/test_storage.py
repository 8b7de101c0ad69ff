"""Runs on a real object store, as people type them: clips read from it, tables written to it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

Run = Callable[..., subprocess.CompletedProcess[str]]
SECRET = "a-secret-that-nobody-may-see"


@pytest.fixture
def unreel(s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `unreel` with the store's address and keys in its environment."""
    monkeypatch.setenv("UNREEL_S3_ENDPOINT", s3.options["aws_endpoint"])
    monkeypatch.setenv("UNREEL_FETCH_FROM", f"{s3.uri}/clips")
    monkeypatch.setenv("UNREEL_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.options["aws_access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.options["aws_secret_access_key"])

    def command(*arguments: object) -> subprocess.CompletedProcess[str]:
        code = "from unreel.cli.main import main; main()"
        return subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )

    return command


@pytest.fixture
def stored_clips(s3: Any, clips: Path, tmp_path: Path) -> Path:
    """The clips in the bucket, and a manifest of this machine that names them there."""
    objects = s3.objects()
    header, *lines = clips.read_text(encoding="utf-8").splitlines()
    for line in lines:
        name = line.partition(",")[0]
        objects.put(f"clips/{name}", (clips.parent / name).read_bytes())
    folder = tmp_path / "bench"
    folder.mkdir()
    placed = [header, *(f"{s3.uri}/clips/{line}" for line in lines)]
    (folder / "manifest.csv").write_text("\n".join(placed), encoding="utf-8")
    return folder


def test_clips_are_read_from_a_store_and_answers_written_to_it_once(
    unreel: Run, s3: Any, stored_clips: Path, clips: Path, tmp_path: Path
) -> None:
    place = f"{s3.uri}/{tmp_path.name}/first"
    asked = ("eval", stored_clips, "--protocol", "reality", "--model", "metadata", "--json")
    first = unreel(*asked, "--out", place)
    assert first.returncode == 0, first.stderr
    told = json.loads(first.stdout)
    assert told["run"] == place
    assert told["outcome"]["answers"]["done"] == 8

    again = json.loads(unreel(*asked, "--out", place).stdout)
    assert (again["outcome"]["answers"]["already"], again["outcome"]["answers"]["done"]) == (8, 0)

    here = json.loads(unreel(*asked[:1], clips, *asked[2:], "--out", "here").stdout)
    assert here["scores"] == told["scores"]

    names = {
        entry["path"] for batch in s3.objects().list(f"{tmp_path.name}/first") for entry in batch
    }
    assert f"{tmp_path.name}/first/recipe.json" in names
    assert any("answers.lance" in name for name in names)
    ledgers = list((tmp_path / "state" / "runs").glob("*/answers.ledger"))
    assert len(ledgers) == 1
    assert not list(tmp_path.glob("s3:*"))

    scored = unreel("score", place, "--json")
    assert scored.returncode == 0, scored.stderr
    assert json.loads(scored.stdout)["scores"] == told["scores"]
    (listed,) = json.loads(unreel("runs", f"{s3.uri}/{tmp_path.name}", "--json").stdout)
    assert (listed["run"], listed["answered"], listed["failed"]) == (place, 8, 0)
    assert json.loads(unreel("runs", place, "--json").stdout) == [listed]

    out = tmp_path / "rows.jsonl"
    exported = unreel("export", place, "--to", "jsonl", "--out", out, "--json")
    assert exported.returncode == 0, exported.stderr
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert {row["location"] for row in rows} == {f"{s3.uri}/clips/c{n}.mp4" for n in range(8)}
    assert all(row["text"] for row in rows)


def test_an_object_that_is_not_there_is_a_failure_and_the_others_go_on(
    unreel: Run, s3: Any, stored_clips: Path, tmp_path: Path
) -> None:
    manifest = stored_clips / "manifest.csv"
    text = manifest.read_text(encoding="utf-8")
    manifest.write_text(text.replace("/c1.mp4", "/nowhere.mp4"), encoding="utf-8")
    done = unreel(
        "eval",
        stored_clips,
        "--protocol",
        "reality",
        "--model",
        "coin",
        "--out",
        f"{s3.uri}/{tmp_path.name}/gap",
        "--json",
    )
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["outcome"]["unreadable"] == {"not-a-file": 1}
    assert told["outcome"]["answers"]["done"] == 7


def test_a_wrong_key_is_said_and_never_shown(
    unreel: Run, s3: Any, stored_clips: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    asked = ("eval", stored_clips, "--protocol", "reality", "--model", "coin")
    done = unreel(*asked, "--out", f"{s3.uri}/runs/shut")
    assert done.returncode == 2
    assert "Check its address, bucket, keys" in done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
