"""What lies behind links is somebody else's: walks do not follow them, tables cannot name it."""

from pathlib import Path

import pytest

from unreel.benchmarks.cells import FOLDER_DEPTH
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.folder_layout import walk_videos
from unreel.benchmarks.loader import open_benchmark
from unreel.core.errors import UnreadableSourceError


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A folder with a clip that is nobody's business."""
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "secret.mp4").write_bytes(b"secret")
    (folder / "manifest.csv").write_text("file,label\nsecret.mp4,real\n")
    return folder


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    folder = tmp_path / "bench"
    for side in ("real", "generated/Veo"):
        (folder / side).mkdir(parents=True)
        (folder / side / "own.mp4").write_bytes(b"own")
    return folder


def _sorted(path: Path) -> tuple[list[str], dict[str, str]]:
    rows = list(open_benchmark(path))
    entries = [row.location for row in rows if isinstance(row, Entry)]
    return entries, {row.name: row.why for row in rows if isinstance(row, Rejected)}


def test_two_links_to_the_folder_itself_come_to_an_end(bench: Path) -> None:
    (bench / "real" / "a").symlink_to(bench)
    (bench / "real" / "b").symlink_to(bench / "real")
    entries, rejected = _sorted(bench)
    assert entries == ["real/own.mp4", "generated/Veo/own.mp4"]
    assert set(rejected) == {"real/a", "real/b"}
    assert "not followed" in rejected["real/a"]


def test_a_linked_folder_or_file_brings_no_private_clip_in(bench: Path, private: Path) -> None:
    (bench / "generated" / "Sora").symlink_to(private)
    (bench / "real" / "stolen.mp4").symlink_to(private / "secret.mp4")
    (bench / "real" / "gone.mp4").symlink_to(private / "nothing.mp4")
    entries, rejected = _sorted(bench)
    assert entries == ["real/own.mp4", "generated/Veo/own.mp4"]
    assert set(rejected) == {"generated/Sora", "real/stolen.mp4", "real/gone.mp4"}


def test_a_side_that_is_a_link_is_rejected(bench: Path, private: Path) -> None:
    (bench / "real").rename(bench / "was")
    (bench / "real").symlink_to(private)
    entries, rejected = _sorted(bench)
    assert (entries, set(rejected)) == (["generated/Veo/own.mp4"], {"real"})


def test_a_folder_that_the_user_names_may_be_a_link_itself(bench: Path, tmp_path: Path) -> None:
    (tmp_path / "shortcut").symlink_to(bench)
    assert len(_sorted(tmp_path / "shortcut")[0]) == 2


@pytest.mark.parametrize("table", ["manifest.csv", "metadata.csv"])
def test_a_row_behind_a_link_that_leads_out_is_rejected(
    table: str, tmp_path: Path, private: Path
) -> None:
    bench = tmp_path / "listed"
    (bench / "clips").mkdir(parents=True)
    (bench / "clips" / "own.mp4").write_bytes(b"own")
    (bench / "clips" / "same.mp4").symlink_to("own.mp4")
    (bench / "clips" / "stolen.mp4").symlink_to(private / "secret.mp4")
    (bench / "elsewhere").symlink_to(private)
    (bench / "up").symlink_to("..")
    names = ["clips/own.mp4", "clips/same.mp4", "clips/stolen.mp4", "elsewhere/secret.mp4"]
    names += ["up/private/secret.mp4", "absent.mp4", "https://host/a.mp4"]
    lines = ["file,label,cleaned", *(f"{name},fake," for name in names)]
    lines.append("b.mp4,fake,elsewhere/secret.mp4")
    (bench / table).write_text("\n".join(lines))
    entries, rejected = _sorted(bench)
    assert entries == [*names[:2], *names[5:]]
    assert set(rejected) == {*names[2:5], "b.mp4"}
    assert all("leads out" in why for why in rejected.values())


@pytest.mark.parametrize("name", ["manifest.csv", "metadata.csv", "all_data.json"])
def test_a_table_that_is_a_link_out_of_the_folder_is_refused(
    name: str, tmp_path: Path, private: Path
) -> None:
    bench = tmp_path / "bench"
    bench.mkdir()
    (bench / name).symlink_to(private / "manifest.csv")
    with pytest.raises(UnreadableSourceError, match="leads out of its folder"):
        open_benchmark(bench)


def test_folders_without_end_are_refused(tmp_path: Path) -> None:
    deep = tmp_path / "/".join(["d"] * (FOLDER_DEPTH + 2))
    deep.mkdir(parents=True)
    with pytest.raises(UnreadableSourceError, match="inside each other"):
        list(walk_videos(tmp_path))


def test_more_files_than_are_taken_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNREEL_TABLE_ROWS", "3")
    for number in range(4):
        (tmp_path / f"{number}.mp4").touch()
    with pytest.raises(UnreadableSourceError, match="UNREEL_TABLE_ROWS"):
        list(walk_videos(tmp_path))


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """A snapshot in the cache of the hub: links to the blobs of its repository."""
    repository = tmp_path / "datasets--me--clips"
    folder = repository / "snapshots" / ("5" * 40)
    (repository / "blobs").mkdir(parents=True)
    for path in ("real/own.mp4", "generated/Veo/own.mp4"):
        blob = repository / "blobs" / path.replace("/", "-")
        blob.write_bytes(b"own")
        (folder / path).parent.mkdir(parents=True)
        (folder / path).symlink_to("../" * (path.count("/") + 2) + f"blobs/{blob.name}")
    return folder


@pytest.mark.parametrize("layout", ["folders", "list"])
def test_links_of_the_hubs_cache_to_its_blobs_are_followed_and_no_others(
    snapshot: Path, private: Path, layout: str
) -> None:
    (snapshot / "real" / "stolen.mp4").symlink_to(private / "secret.mp4")
    (snapshot / "real" / "loop.mp4").symlink_to("loop.mp4")
    table = snapshot.parent.parent / "blobs" / "table"
    if layout == "list":
        names = ("real/own.mp4", "generated/Veo/own.mp4", "real/stolen.mp4")
        table.write_text("\n".join(["file,label", *(f"{name},fake" for name in names)]))
        (snapshot / "manifest.csv").symlink_to("../../blobs/table")
    rows = list(open_benchmark(snapshot, layout))
    entries = [row.location for row in rows if isinstance(row, Entry)]
    rejected = [row.name for row in rows if isinstance(row, Rejected)]
    assert entries == ["real/own.mp4", "generated/Veo/own.mp4"]
    assert (
        rejected == ["real/stolen.mp4"]
        if layout == "list"
        else ["real/loop.mp4", "real/stolen.mp4"]
    )


def test_blobs_that_are_themselves_a_link_are_not_followed(snapshot: Path, private: Path) -> None:
    blobs = snapshot.parent.parent / "blobs"
    blobs.rename(private / "blobs")
    blobs.symlink_to(private / "blobs")
    entries, rejected = _sorted(snapshot)
    assert (entries, len(rejected)) == ([], 2)
