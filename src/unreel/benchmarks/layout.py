"""Names of the benchmark layouts, importable without their readers."""

from enum import StrEnum


class BenchmarkLayout(StrEnum):
    """Layout of a benchmark on disk."""

    DEEPTRACE = "deeptrace"
    """`all_data.json` and its videos: `unreel.benchmarks.deeptrace`."""
    REALITY = "reality"
    """`clips.csv`, `real/` and a folder for each creator: `unreel.benchmarks.reality`."""
    REALISM = "realism"
    """A table with scores: `unreel.benchmarks.realism`."""
    FOLDERS = "folders"
    """`real/` and `generated/<creator>/`: `unreel.benchmarks.folders`."""
    LIST = "list"
    """A table with labels: `unreel.benchmarks.records`."""
    VIDEO_FOLDER = "video-folder"
    """`metadata.jsonl`, `.csv` or `.parquet` and its media: `unreel.benchmarks.video_folder`."""
