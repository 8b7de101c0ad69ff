"""`unreel annotate convert` as people type it."""

import json
from pathlib import Path
from typing import Any

from marked_videos import BOX, cvat, key, labelbox, region, studio
from unreel.benchmarks.loader import open_benchmark


def convert(run: Any, *words: object, status: int = 0) -> Any:
    done = run("annotate", "convert", *words)
    assert done.returncode == status, done.stderr
    return done


def test_a_file_of_cvat_becomes_a_benchmarks_list(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    track = f'<track id="0" label="Object Merging"><box frame="30" {BOX}/></track>'
    file.write_text(cvat(track))
    done = json.loads(
        convert(run, file, "--to", "unreel", "--out", "out", "--rate", "30", "--json").stdout
    )
    assert (done["n_videos"], done["n_tracks"], done["rejected"]) == (1, 1, [])
    (line,) = (tmp_path / "out" / "metadata.jsonl").read_text().splitlines()
    (trace,) = json.loads(line)["traces"]
    assert trace["span"] == {"start_us": 1_000_000, "end_us": 3_333_333}
    assert trace["categories"] == ["object-merging"]


def test_a_written_list_opens_as_a_benchmark(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.ndjson"
    row = labelbox(
        classifications=[{"name": "seen as", "radio_answer": {"name": "Real"}}],
    )
    file.write_text(row)
    convert(run, file, "--to", "unreel", "--out", tmp_path / "out")
    (tmp_path / "out" / "a.mp4").write_bytes(b"")
    entries = list(open_benchmark(tmp_path / "out"))
    assert [(entry.name, entry.label) for entry in entries] == [("a.mp4", "real")]


def test_what_is_not_written_is_told_and_ends_with_status_1(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(studio(region(key(1))))
    done = convert(run, file, "--to", "cvat", "--out", "out", status=1)
    assert "--size" in done.stderr
    convert(run, file, "--to", "cvat", "--out", tmp_path / "out2", "--size", "640x360")
    assert 'xtl="64.000000"' in (tmp_path / "out2" / "set-a.mp4.xml").read_text()


def test_a_wrong_word_ends_with_status_2_and_says_what_to_write(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(studio())
    to = ("--to", "cvat", "--out", tmp_path / "out")
    convert(run, file, *to, "--size", "big", status=2)
    convert(run, file, *to, "--rate", "quick", status=2)
    file.write_text("hello")
    convert(run, file, *to, status=2)
    convert(run, tmp_path / "absent", *to, status=2)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    convert(run, file, *to, "--from", "cvat", status=2)


def test_masks_are_listed_beside_the_traces(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    mask = '<mask frame="0" rle="1" left="1" top="1" width="5" height="5"/>'
    file.write_text(cvat(f'<track id="0" label="x">{mask}</track>'))
    convert(run, file, "--to", "unreel", "--out", tmp_path / "out", "--rate", "25")
    (line,) = (tmp_path / "out" / "masks.jsonl").read_text().splitlines()
    assert json.loads(line)["mask"] == "a.xml#track=0&frame=0"
