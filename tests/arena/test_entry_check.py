"""The audit of an entry's clips finds errors of the files and properties that reveal the label."""

import json
from pathlib import Path

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from arena.entrants import N_SCENES, write_made, write_season
from unreel.arena.entry_check import (
    FASTEST,
    FEWEST_FRAMES,
    LONGEST_S,
    SHORTEST_S,
    SLOWEST,
    SMALLEST_SIDE,
    EntryAudit,
    audit_entry_clips,
)
from unreel.arena.season.folder import Season
from unreel.arena.season.scenes import open_season_benchmark
from unreel.core.errors import InvalidSettingError
from unreel.core.settings import read_environment_settings
from unreel.engine.storage_access import ClipAccessSettings
from warm import Warm

PAGE = Path(__file__).parents[2] / "docs" / "arena.md"


@pytest.fixture
def season(tmp_path: Path) -> Season:
    return write_season(tmp_path)


@pytest.fixture
def ours(season: Season) -> Path:
    """A faultless entry to the season."""
    return write_made(season.base / "ours")


def audit(season: Season, folder: Path) -> EntryAudit:
    access = ClipAccessSettings(settings=read_environment_settings(), trusted=True)
    return audit_entry_clips(folder, open_season_benchmark(season), access, seed=0)


def errors(season: Season, folder: Path) -> set[str]:
    found = audit(season, folder)
    assert found.has_errors == any(finding.is_error for finding in found.findings)
    return {finding.check for finding in found.findings if finding.is_error}


def test_a_faultless_entry_has_no_finding(season: Season, ours: Path) -> None:
    assert audit(season, ours) == EntryAudit(n_clips=N_SCENES, findings=())


def test_missing_and_unknown_scenes_are_named(season: Season, ours: Path) -> None:
    (ours / "scene-1.mp4").rename(ours / "scene-77.mp4")
    found = audit(season, ours)
    assert {finding.check for finding in found.findings} == {"names"}
    text = " ".join(map(str, found.findings))
    assert "(scene-1)" in text
    assert "(scene-77.mp4)" in text


def test_each_setting_needs_every_scene_once(season: Season, ours: Path) -> None:
    for number in range(N_SCENES):
        data = (ours / f"scene-{number}.mp4").read_bytes()
        (ours / f"scene-{number}.mp4").unlink()
        (ours / f"scene-{number}-text.mp4").write_bytes(data)
        (ours / f"scene-{number}-image.mp4").write_bytes(data)
    assert errors(season, ours) == set()
    (ours / "scene-0-text.mp4").unlink()
    (ours / "scene-1-image.mkv").write_bytes((ours / "scene-1-image.mp4").read_bytes())
    found = audit(season, ours)
    assert sorted(map(str, found.findings)) == [
        "names: a scene has no clip from text. Add it (scene-0)",
        "names: a scene has several clips. Keep one (scene-1-image.mp4)",
    ]


@pytest.mark.parametrize(
    ("given", "check"), [({"n_frames": 4}, "length"), ({"width": 24, "height": 24}, "size")]
)
def test_clips_that_are_too_short_or_small_are_errors(
    season: Season, given: dict[str, int], check: str
) -> None:
    assert check in errors(season, write_made(season.base / "ours", **given))


def test_a_clip_that_cannot_be_decoded_is_an_error(season: Season, ours: Path) -> None:
    (ours / "scene-0.mp4").write_bytes(b"not a clip")
    assert errors(season, ours) == {"decoding"}


def test_a_cut_clip_is_an_error(season: Season, ours: Path) -> None:
    data = (ours / "scene-0.mp4").read_bytes()
    (ours / "scene-0.mp4").write_bytes(data[: len(data) * 2 // 3])
    assert errors(season, ours) == {"decoding"}


def test_a_link_out_of_the_folder_is_not_followed(season: Season, ours: Path) -> None:
    (ours / "scene-0.mp4").unlink()
    (ours / "scene-0.mp4").symlink_to(season.base / "bench" / "clips" / "real-0.mp4")
    assert "names" in errors(season, ours)


@pytest.mark.parametrize("text", [None, ""])
def test_clips_without_a_licence_are_an_error(season: Season, ours: Path, text: str | None) -> None:
    (ours / "LICENSE").unlink()
    if text is not None:
        (ours / "LICENSE").write_text(text)
    assert errors(season, ours) == {"licence"}


def test_another_length_than_the_real_clips_is_a_warning(season: Season) -> None:
    found = audit(season, write_made(season.base / "ours", n_frames=40))
    (length,) = [finding for finding in found.findings if finding.check == "length"]
    assert not length.is_error
    assert len(length.clips) == N_SCENES


def test_properties_that_reveal_the_label_are_warnings(tmp_path: Path) -> None:
    season = write_season(tmp_path, n_scenes=6)
    found = audit(season, write_made(tmp_path / "ours", n_scenes=6, width=160))
    assert not found.has_errors
    assert any(f.check == "leaks" and "160 x 128" in f.text for f in found.findings)


def test_a_folder_without_videos_is_refused(season: Season, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidSettingError, match="no video"):
        audit(season, tmp_path / "empty")


def test_the_command_prints_the_findings_and_exits_with_1_for_an_error(
    season: Season, ours: Path, warm: Warm
) -> None:
    done = warm.run("arena", "check", ours, "--trusted", cwd=season.base)
    assert (done.returncode, done.stdout) == (0, "no errors\n"), done.stderr
    (ours / "LICENSE").unlink()
    done = warm.run("arena", "check", ours, "--trusted", cwd=season.base)
    assert (done.returncode, done.stdout) == (1, "errors\n")
    assert "error: licence: no file LICENSE" in done.stderr
    done = warm.run("arena", "check", ours, "--trusted", "--json", cwd=season.base)
    assert [each["check"] for each in json.loads(done.stdout)["findings"]] == ["licence"]
    assert not (season.base / "seasons").exists()


def test_the_page_states_the_limits_that_are_held() -> None:
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    limits = (
        f"under {float(SHORTEST_S):g} s or over {LONGEST_S} s",
        f"under {FEWEST_FRAMES} frames",
        f"outside {SLOWEST} to {FASTEST} frames a second",
        f"a side under {SMALLEST_SIDE} pixels",
    )
    assert [each for each in limits if each not in page] == []
