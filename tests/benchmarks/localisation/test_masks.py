"""Masks of generated regions become traces with boxes."""

import json
from pathlib import Path

import numpy as np
import pytest

from synthesise import ClipRecipe, synthesise
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.loader import open_benchmark
from unreel.benchmarks.localisation.masks import convert_masks_to_traces, read_masked_clips
from unreel.benchmarks.table_entries import convert_entry_to_record
from unreel.core.box import Box
from unreel.core.settings import EnvironmentSettings
from unreel.core.span import TimeSpan
from unreel.media.access import open_media_reader


def mask(*square: int) -> np.ndarray:
    found = np.zeros((10, 20), np.bool_)
    if square:
        x0, y0, x1, y1 = square
        found[y0:y1, x0:x1] = True
    return found


def test_each_run_of_masks_is_a_trace_with_a_box_at_each_instant() -> None:
    masks = [mask(), mask(2, 1, 4, 5), mask(4, 1, 6, 5), mask(), mask(0, 0, 20, 10)]
    first, last = convert_masks_to_traces(
        [(place * 100, each) for place, each in enumerate(masks)], 450
    )
    assert (first.span, last.span) == (TimeSpan(100, 300), TimeSpan(400, 450))
    assert [mark.at_us for mark in first.track] == [100, 200]
    assert first.track[0].box == Box(0.1, 0.1, 0.2, 0.5)
    assert last.track[0].box == Box(0, 0, 1, 1)
    assert convert_masks_to_traces([(0, mask())], 100) == ()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("masked")
    for name in ("videos/edited.mp4", "videos/plain.mp4", "videos/broken.mp4", "masks/edited.mp4"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(synthesise(ClipRecipe(n_frames=24)))
    (root / "masks" / "broken.mp4").write_bytes(b"no video")
    return root


def test_a_folder_of_masks_becomes_a_table_that_is_read_back(folder: Path) -> None:
    with open_media_reader(EnvironmentSettings(), trusted=True) as reader:
        rows = {
            row.name: row for row in read_masked_clips(folder, reader) if isinstance(row, Entry)
        }
        rejected = [row for row in read_masked_clips(folder, reader) if isinstance(row, Rejected)]
    assert [row.name for row in rejected] == ["masks/broken.mp4"]
    assert rows["videos/plain.mp4"].traces == ()
    edited = rows["videos/edited.mp4"]
    assert edited.traces
    assert edited.traces[0].track
    table = folder / "manifest.jsonl"
    table.write_text(
        "".join(
            json.dumps(convert_entry_to_record(row, file_name=row.location)) + "\n"
            for row in rows.values()
        )
    )
    found = {row.name: row for row in open_benchmark(table)}
    assert found[edited.name].traces == edited.traces
