"""What changed between two versions of a benchmark."""

import shutil

from unreel.curation.benchmark_diff import BYTES, ClipFieldChange, compare_benchmarks
from unreel.curation.curation_run import run_curation


def frozen(curation, source, out, **sections):
    job = curation(source, out=out, **sections)
    run_curation(job)
    return job.context.place.path / "benchmark"


def test_clips_that_come_go_and_change_are_told(footage, curation, tmp_path) -> None:
    films = tmp_path / "films"
    shutil.copytree(footage, films)
    whole = {"shares": [1, 0, 0]}
    before = frozen(curation, {"path": "films", "licence": "CC0"}, "one", freeze=whole)
    (films / "real/clip1.mp4").rename(films / "real/clip1b.mp4")
    (films / "real/clip3.mp4").unlink()
    (films / "real/new.mp4").write_bytes((footage / "real/clip3.mp4").read_bytes() + b" ")
    (films / "real/clip5.mp4").write_bytes((footage / "real/clip5.mp4").read_bytes() + b" ")
    after = frozen(curation, {"path": "films", "licence": "MIT"}, "two", freeze=whole)
    found = compare_benchmarks(before, after)
    assert found.added == ("real/new.mp4",)
    assert found.removed == ("real/clip3.mp4",)
    assert found.renamed == (("real/clip1.mp4", "real/clip1b.mp4"),)
    assert ClipFieldChange("real/clip7.mp4", "licence", "CC0", "MIT") in found.changed
    assert [change.name for change in found.changed if change.field == BYTES] == ["real/clip5.mp4"]
    assert found.n_same == 0


def test_any_benchmark_can_be_compared(footage, curation, tmp_path) -> None:
    folder = frozen(curation, {"path": str(footage)}, "one", freeze={"shares": [1, 0, 0]})
    found = compare_benchmarks(footage, folder)
    assert {change.field for change in found.changed} == {"split"}
