"""Zip files of strangers: nothing is written outside the folder, and bombs are rejected before they grow."""

import io
import zipfile
from pathlib import Path

import pytest

from miniatures import pack, split
from unreel.catalogue.unpack import unpack_zip
from unreel.core.errors import UnreadableSourceError
from unreel.core.output_files import OutputDirectory


def unpack(folder: Path, parts: dict[str, bytes]) -> list[str]:
    output = OutputDirectory(folder, published=True)
    for name, data in parts.items():
        output.write(name, data)
    return unpack_zip(sorted(parts), output, on_bytes=lambda _: None)


@pytest.mark.parametrize("n_parts", [1, 2, 7])
def test_a_split_archive_is_unpacked_without_joining_its_parts(
    tmp_path: Path, n_parts: int
) -> None:
    files = {f"videos/{n}.mp4": bytes([n]) * 1000 for n in range(5)}
    assert unpack(tmp_path, split("videos.zip", pack(files), n_parts)) == list(files)
    assert {path: (tmp_path / path).read_bytes() for path in files} == files
    (tmp_path / "videos" / "3.mp4").unlink()
    (tmp_path / "videos" / "4.mp4").write_bytes(b"cut short")
    unpack(tmp_path, split("videos.zip", pack(files), n_parts))
    assert {path: (tmp_path / path).read_bytes() for path in files} == files


def test_files_without_a_common_folder_go_into_one_with_the_name_of_the_archive(
    tmp_path: Path,
) -> None:
    assert unpack(tmp_path, {"T2V/Wan.zip": pack({"a.mp4": b"a"})}) == ["T2V/Wan/a.mp4"]
    assert unpack(tmp_path, {"s.zip": pack({"Real/a": b"", "Fake/a": b""})}) == [
        "s/Real/a",
        "s/Fake/a",
    ]


def _entry(name: str, mode: int = 0o100644, data: bytes = b"x", packing: int = 0) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packing) as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr, info.compress_type = mode << 16, packing
        archive.writestr(info, data)
    return buffer.getvalue()


def _shared_bytes() -> bytes:
    """Two entries of a directory that lead to the same bytes."""
    data = _entry("a", data=bytes(500_000))
    at = data.index(b"PK\x01\x02")
    end = data.index(b"PK\x05\x06")
    entry, tail = data[at:end], bytearray(data[end:])
    tail[8:12] = (2).to_bytes(2, "little") * 2
    tail[12:16] = (2 * len(entry)).to_bytes(4, "little")
    return data[:at] + entry + entry.replace(b"a", b"b", 1) + bytes(tail)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (_entry("../out.mp4"), "does not stay inside its folder"),
        (_entry("/etc/out.mp4"), "does not stay inside its folder"),
        (_entry("a/../../out.mp4"), "does not stay inside its folder"),
        (_entry("a\\..\\out.mp4"), "backslash"),
        (_entry("a\nb.mp4"), "control character"),
        (_entry("out.mp4", mode=0o120777, data=b"/etc/passwd"), "a link"),
        (_entry("b", data=bytes(20 << 20), packing=zipfile.ZIP_DEFLATED), "packed ones"),
        (_shared_bytes(), "overlap"),
        (b"PK no archive", "damaged"),
        (_entry("a.mp4", data=b"y" * 100).replace(b"y" * 100, b"z" * 100), "damaged"),
    ],
)
def test_an_unsafe_archive_writes_nothing(tmp_path: Path, data: bytes, words: str) -> None:
    folder = tmp_path / "in" / "here"
    with pytest.raises(UnreadableSourceError, match=words):
        unpack(folder, {"x.zip": data})
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["x.zip"]


def test_a_link_in_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "videos").symlink_to(tmp_path)
    with pytest.raises(RuntimeError, match="link"):
        unpack(tmp_path / "in", {"x.zip": pack({"videos/a.mp4": b"a"})})
    assert not (tmp_path / "a.mp4").exists()
