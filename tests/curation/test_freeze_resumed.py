"""A freeze that was killed while it copied goes on: every file is there, with its own bytes."""

from pathlib import Path
from typing import Any

from unreel.core.content_ids import compute_clip_id
from unreel.core.output_files import OutputDirectory
from unreel.curation.freeze.media import BenchmarkMedia, copy_benchmark_media
from unreel.curation.segment import SortedRunWriter

N_FILES = 6


def write_media(folder: Path) -> tuple[BenchmarkMedia, dict[str, bytes]]:
    """Return the media of a freeze, and the bytes of each file by its published name."""
    folder.mkdir()
    runs, contents = SortedRunWriter(OutputDirectory(folder), "media"), {}
    for number in range(N_FILES):
        film = folder / f"film{number}.mp4"
        film.write_bytes(f"film number {number}".encode())
        name = f"train/media/{number:04}.mp4"
        runs.add((name, compute_clip_id(film), str(film), film.stat().st_size))
        contents[name] = film.read_bytes()
    return BenchmarkMedia(OutputDirectory(folder), runs.end()), contents


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of each file below the folder by its relative path."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def resume(curation: Any, tmp_path: Path, already: dict[str, bytes]) -> dict[str, bytes]:
    """Copy all media to a target that holds the files `already`; return what the target holds."""
    media, _ = write_media(tmp_path / "films")
    bench = curation({"path": "films"}).context
    target = bench.place / "benchmark"
    for name, data in already.items():
        target.put(name, data, published=True)
    copy_benchmark_media(media, target, bench)
    return read_files(target.path)


def test_files_that_are_missing_after_a_kill_are_copied(curation: Any, tmp_path: Path) -> None:
    _, contents = write_media(tmp_path / "expected")
    # Several files are copied at once: a kill may leave a later one and not an earlier one.
    copied = {name: contents[name] for place, name in enumerate(contents) if place in {0, 1, 3}}
    assert resume(curation, tmp_path, copied) == contents


def test_a_file_of_another_size_is_copied_again(curation: Any, tmp_path: Path) -> None:
    _, contents = write_media(tmp_path / "expected")
    cut, empty, longer = list(contents)[:3]
    damaged = {cut: contents[cut][:-1], empty: b"", longer: contents[longer] + b"?"}
    assert resume(curation, tmp_path, damaged) == contents
