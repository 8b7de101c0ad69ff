"""Detection of the format of a file with generated segments."""

from itertools import islice
from pathlib import Path
from typing import Final

from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.layout import BenchmarkLayout
from unreel.benchmarks.localisation.activity_forensics import read_activity_forensics_lines
from unreel.benchmarks.localisation.json_stream import stream_json_items
from unreel.benchmarks.localisation.lav_df import is_lav_df_row
from unreel.benchmarks.localisation.vif_cot import is_vif_cot_row
from unreel.core.errors import UnreadableSourceError

SUFFIXES: Final = (".json", ".txt")
_LINES: Final = 5


def detect_segment_file_layouts(path: Path) -> list[BenchmarkLayout]:
    """Return the layout of a file with generated segments, by its first rows; empty if no layout fits."""
    try:
        if path.suffix.lower() == ".txt":
            first = list(islice(read_activity_forensics_lines(path), _LINES))
            is_text = any(not isinstance(line, Rejected) for line in first)
            return [BenchmarkLayout.ACTIVITY_FORENSICS] if is_text else []
        if path.suffix.lower() != ".json":
            return []
        rows = [row for _, row in islice(stream_json_items(path), _LINES)]
    except UnreadableSourceError:
        return []
    if any(map(is_lav_df_row, rows)):
        return [BenchmarkLayout.LAV_DF]
    return [BenchmarkLayout.VIF_COT] if any(map(is_vif_cot_row, rows)) else []
