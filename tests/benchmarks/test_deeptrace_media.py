"""Media out of whole and split archives: what rows name, nothing else and nowhere else."""

import json
import stat
import zipfile
from pathlib import Path

import pytest

from unreel.benchmarks.archives import JoinedFile, extract_member, find_parts, open_archive
from unreel.benchmarks.deeptrace_media import compare_media, extract_media
from unreel.benchmarks.entry import Rejected
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.writing import OutputDirectory

UNNAMED = ("videos/stray-1.mp4", "videos/stray-2.mp4")


def make(root: Path, names: list[str], members: dict[str, bytes]) -> Path:
    rows = [{"video_path": name} for name in names]
    (root / "all_data.json").write_text(json.dumps(rows), encoding="utf-8")
    with zipfile.ZipFile(root / "videos.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return root


def files_below(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_archives_hold_all_that_rows_name_and_two_videos_more(deeptrace: Path) -> None:
    report = compare_media(deeptrace)
    assert report.n_present == 6636
    assert report.missing == ()
    assert report.unnamed == UNNAMED
    assert report.refused == ()
    assert report.n_junk == 6638 + 2 * 3  # one for each video, two folders and a .DS_Store each


def test_a_member_is_taken_out_of_the_split_archive(deeptrace: Path, tmp_path: Path) -> None:
    places = ["videos/fake-test-331.mp4", "videos/fake-train-0.mp4", "real_videos/real-7.mp4"]
    found = list(extract_media(deeptrace, into=tmp_path, locations=places))
    assert sorted(found) == sorted(tmp_path / place for place in places)
    assert files_below(tmp_path) == sorted(places)
    for place in places:
        assert (tmp_path / place).read_bytes() == f"bytes of {place}".encode()


def test_all_named_media_are_taken_out_once(deeptrace: Path, tmp_path: Path) -> None:
    assert sum(1 for _ in extract_media(deeptrace, into=tmp_path)) == 6636
    assert list(extract_media(deeptrace, into=tmp_path)) == []
    assert not (tmp_path / UNNAMED[0]).exists()


def test_media_in_folders_count_as_present(tmp_path: Path) -> None:
    make(tmp_path, ["videos/a.mp4", "videos/b.mp4"], {})
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "a.mp4").write_bytes(b"x")
    report = compare_media(tmp_path)
    assert (report.n_present, report.missing) == (1, ("videos/b.mp4",))


def test_a_missing_part_is_named(deeptrace: Path, tmp_path: Path) -> None:
    for part in find_parts(deeptrace, "videos.zip"):
        if not part.name.endswith("002"):
            (tmp_path / part.name).write_bytes(part.read_bytes())
    with pytest.raises(UnreadableSourceError, match=r"videos.zip.002 is missing"):
        find_parts(tmp_path, "videos.zip")


def test_a_cut_archive_cannot_be_read(deeptrace: Path, tmp_path: Path) -> None:
    first = find_parts(deeptrace, "videos.zip")[0]
    with pytest.raises(UnreadableSourceError, match="all parts"), open_archive([first]):
        pass


def test_a_member_that_leads_elsewhere_is_refused_and_written_nowhere(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    evil = {"../evil.mp4": b"x", "/abs/evil.mp4": b"x", "videos/../../evil.mp4": b"x"}
    names = ["videos/a.mp4", "videos/evil.mp4", "evil.mp4"]
    make(root, names, {"videos/a.mp4": b"a", **evil})
    report = compare_media(root)
    assert len(report.refused) == 3
    into = tmp_path / "into"
    list(extract_media(root, into=into))
    assert files_below(tmp_path / "into") == ["videos/a.mp4"]
    assert not list(tmp_path.glob("*.mp4"))


def test_a_bomb_is_stopped_at_the_limit_and_leaves_nothing(tmp_path: Path) -> None:
    make(tmp_path, ["videos/bomb.mp4", "videos/a.mp4"], {
        "videos/bomb.mp4": bytes(50_000_000), "videos/a.mp4": b"a",
    })  # fmt: skip
    assert (tmp_path / "videos.zip").stat().st_size < 100_000
    into = tmp_path / "into"
    found = list(extract_media(tmp_path, into=into, max_member_bytes=1_000_000))
    rejected, path = found
    assert isinstance(rejected, Rejected)
    assert "more than 1000000 bytes" in rejected.why
    assert path == into / "videos/a.mp4"
    assert files_below(into) == ["videos/a.mp4"]


def test_the_limit_over_all_members_holds_too(tmp_path: Path) -> None:
    members = {f"videos/{number}.mp4": bytes(1000) for number in range(5)}
    make(tmp_path, list(members), members)
    found = list(extract_media(tmp_path, into=tmp_path / "into", max_total_bytes=2500))
    assert [isinstance(one, Rejected) for one in found] == [False, False, True, True, True]


def test_a_header_that_lies_about_the_size_does_not_help(tmp_path: Path) -> None:
    make(tmp_path, [], {"videos/a.mp4": bytes(10_000)})
    with open_archive([tmp_path / "videos.zip"]) as archive:
        member = archive.getinfo("videos/a.mp4")
        with pytest.raises(InvalidValueError, match="more than 100 bytes"):
            extract_member(archive, member, into=OutputDirectory(tmp_path), name="a", max_bytes=100)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("names", [["videos/a", "videos/a/b"], ["videos/a/b", "videos/a"]])
def test_a_member_below_another_member_is_rejected(names: list[str], tmp_path: Path) -> None:
    make(tmp_path, names, dict.fromkeys(names, b"x"))
    assert [row.name.strip("'") for row in compare_media(tmp_path).refused] == [names[1]]
    (unpacked,) = extract_media(tmp_path, into=tmp_path / "into")
    assert unpacked == tmp_path / "into" / names[0]
    assert files_below(tmp_path / "into") == [names[0]]


def test_nothing_is_unpacked_through_a_link(tmp_path: Path) -> None:
    make(tmp_path, ["videos/a.mp4"], {"videos/a.mp4": b"x"})
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "into").mkdir()
    (tmp_path / "into/videos").symlink_to(tmp_path / "elsewhere")
    (rejected,) = extract_media(tmp_path, into=tmp_path / "into")
    assert isinstance(rejected, Rejected)
    assert files_below(tmp_path / "elsewhere") == []


def test_a_damaged_member_is_rejected(tmp_path: Path) -> None:
    make(tmp_path, ["videos/a.mp4"], {"videos/a.mp4": b"some bytes that are long enough " * 20})
    data = bytearray((tmp_path / "videos.zip").read_bytes())
    data[60] ^= 0xFF
    (tmp_path / "videos.zip").write_bytes(data)
    (rejected,) = extract_media(tmp_path, into=tmp_path / "into")
    assert isinstance(rejected, Rejected)
    assert "damaged" in rejected.why


def test_a_link_in_an_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "all_data.json").write_text('[{"video_path": "videos/l.mp4"}]', encoding="utf-8")
    link = zipfile.ZipInfo("videos/l.mp4")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "videos.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    (rejected,) = extract_media(tmp_path, into=tmp_path / "into")
    assert isinstance(rejected, Rejected)
    assert "link" in rejected.why


def test_joined_files_read_as_one(tmp_path: Path) -> None:
    parts = []
    for number, data in enumerate([b"abc", b"", b"defg", b"h"]):
        parts.append(tmp_path / str(number))
        parts[-1].write_bytes(data)
    with JoinedFile(parts) as joined:
        assert joined.readall() == b"abcdefgh"
        assert joined.seek(-3, 2) == 5
        assert joined.read(2) == b"fg"
        assert joined.seek(2) == 2
        assert joined.read(1) == b"c"
        assert joined.seek(100) == 100
        assert joined.read(5) == b""
        with pytest.raises(OSError, match="Invalid argument"):
            joined.seek(-1)


def test_a_row_without_a_usable_path_names_no_file(tmp_path: Path) -> None:
    make(tmp_path, ["../x.mp4", "videos/a.mp4"], {"videos/a.mp4": b"a"})
    report = compare_media(tmp_path)
    assert (report.n_present, report.missing, report.unnamed) == (1, (), ())
