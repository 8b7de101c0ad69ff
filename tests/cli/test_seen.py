"""`unreel seen`: copies, parts and mirrored copies of clips in an index, and packs of fingerprints."""

import gzip
import json
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

pytest.importorskip("pdqhash", reason="needs the extra review: pip install 'unreel[review]'")

from synthesise import ClipRecipe, synthesise
from unreel.core.settings import read_environment_settings
from unreel.media.access import open_media_reader
from unreel.media.perturb import build_clip_format
from unreel.media.render import CroppedFrameRange, PixelCrop


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    for scene, seed in (("room", 1), ("street", 2)):
        recipe = ClipRecipe(scene=scene, width=320, height=240, n_frames=96, seed=seed)
        (folder / f"{scene}.mp4").write_bytes(synthesise(recipe))
    return folder


@pytest.fixture(scope="module")
def copies(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small copy of low quality, and two seconds from the middle, of `room`."""
    folder = tmp_path_factory.mktemp("copies")
    original = archive / "room.mp4"
    with open_media_reader(read_environment_settings(), trusted=True) as reader:
        facts = reader.probe(original)
        small = reader.normalise(original, build_clip_format(facts, scale=Fraction(1, 2), crf=34))
        (folder / "messenger.mp4").write_bytes(small)
        whole = PixelCrop(left=0, top=0, width=320, height=240)
        part = reader.render(original, CroppedFrameRange(crop=whole, first_frame=24, end_frame=72))
        (folder / "part.mp4").write_bytes(part)
    return folder


def find(run, *files: Path) -> list[list[dict]]:
    done = run("seen", "find", *files, "--index", "s.sqlite", "--trusted", "--json")
    assert done.returncode == 0, done.stderr
    return [row["matches"] for row in json.loads(done.stdout)]


def test_copies_and_parts_are_found_with_their_times(run, archive: Path, copies: Path) -> None:
    added = run("seen", "add", archive, "--index", "s.sqlite", "--trusted", "--json")
    assert added.returncode == 0, added.stderr
    again = run("seen", "add", archive, "--index", "s.sqlite", "--trusted")
    assert "0 clips added" in again.stderr
    assert "2 were there already" in again.stderr
    messenger, part, same = find(
        run, copies / "messenger.mp4", copies / "part.mp4", archive / "street.mp4"
    )
    assert [Path(match["clip"]["place"]).name for match in messenger] == ["room.mp4"]
    assert not messenger[0]["is_same_file"]
    (match,) = part
    assert match["span"]["start_us"] == 0
    assert abs(match["seen_span"]["start_us"] - 1_000_000) <= 500_000
    assert [match["is_same_file"] for match in same] == [True]


def test_a_pack_carries_fingerprints_to_another_index(
    run, archive: Path, copies: Path, tmp_path: Path
) -> None:
    run("seen", "add", archive, "--index", "theirs.sqlite", "--trusted")
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    done = run("seen", "export", "p.jsonl.gz", "--index", "theirs.sqlite", "--sign", key)
    assert done.returncode == 0, done.stderr
    pack = gzip.decompress((tmp_path / "p.jsonl.gz").read_bytes())
    assert str(archive).encode() not in pack
    added = run("seen", "add", "p.jsonl.gz", "--index", "s.sqlite")
    assert "2 clips added" in added.stderr
    (matches,) = find(run, copies / "messenger.mp4")
    assert (matches[0]["clip"]["place"], matches[0]["clip"]["source"]) == ("room.mp4", "p")
    signature = tmp_path / "p.jsonl.gz.sig"
    for damaged in (
        pack[:-40],
        pack.replace(b'"duration_us": 4', b'"duration_us": -4'),
        b"{}",
        b"",
    ):
        (tmp_path / "q.jsonl.gz").write_bytes(gzip.compress(damaged))
        assert run("seen", "add", "q.jsonl.gz", "--index", "n.sqlite").returncode == 2
    shutil.copy(signature, tmp_path / "q.jsonl.gz.sig")
    (tmp_path / "q.jsonl.gz").write_bytes(gzip.compress(pack, mtime=1))
    forged = run("seen", "add", "q.jsonl.gz", "--index", "n.sqlite")
    assert forged.returncode == 2
    assert "signature" in forged.stderr


def test_a_review_searches_the_index(
    run, archive: Path, copies: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UNREEL_STATE", str(tmp_path / "state"))
    before = run("review", copies / "part.mp4", "--trusted")
    assert "Seen before" not in before.stdout
    run("seen", "add", archive, "--trusted")
    found = " ".join(run("review", copies / "part.mp4", "--trusted").stdout.split())
    assert "shows the same as 1.00 s to" in found


def test_what_is_no_index_is_refused(run, archive: Path, tmp_path: Path) -> None:
    clip = archive / "room.mp4"
    assert run("seen", "find", clip, "--index", "absent.sqlite").returncode == 2
    (tmp_path / "text.sqlite").write_text("not a database at all", encoding="utf-8")
    done = run("seen", "find", clip, "--index", "text.sqlite")
    assert done.returncode == 2
    assert "cannot be used as an index" in done.stderr
    (tmp_path / "torn.mp4").write_bytes(clip.read_bytes()[:2000])
    torn = run("seen", "add", "torn.mp4", archive, "--index", "s.sqlite", "--trusted")
    assert torn.returncode == 1
    assert "2 clips added" in torn.stderr
