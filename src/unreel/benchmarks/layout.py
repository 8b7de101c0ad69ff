"""Names of the benchmark layouts, importable without their readers."""

from enum import StrEnum


class BenchmarkLayout(StrEnum):
    """Layout of a benchmark on disk."""

    DEEPTRACE = "deeptrace"
    """`all_data.json` and its videos: `unreel.benchmarks.deeptrace`."""
    REALITY = "reality"
    """`clips.csv`, `real/` and a folder for each creator: `unreel.benchmarks.video_reality_test`."""
    REALISM = "realism"
    """A table with scores: `unreel.benchmarks.video_real_bench`."""
    FOLDERS = "folders"
    """`real/` and `generated/<creator>/`: `unreel.benchmarks.folder_layout`."""
    LIST = "list"
    """A table with labels: `unreel.benchmarks.table_entries`."""
    LAV_DF = "lav-df"
    """A JSON list of clips with fake segments: `unreel.benchmarks.localisation.lav_df`."""
    ACTIVITY_FORENSICS = "activity-forensics"
    """Text lines with fake segments: `unreel.benchmarks.localisation.activity_forensics`."""
    VIF_COT = "vif-cot"
    """Conversations with tagged segments: `unreel.benchmarks.localisation.vif_cot`."""
    VIDEO_FOLDER = "video-folder"
    """`metadata.jsonl`, `.csv` or `.parquet` and its media: `unreel.benchmarks.video_folder`."""
