"""Detection of the format of a file about generated segments."""

from itertools import islice
from pathlib import Path
from typing import Final

from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.layout import BenchmarkLayout
from unreel.benchmarks.localisation.activity_forensics import read_lines
from unreel.benchmarks.localisation.json_items import read_json_items
from unreel.benchmarks.localisation.lav_df import is_lav_df
from unreel.benchmarks.localisation.vif_cot import is_vif_cot
from unreel.core.errors import UnreadableSourceError

SUFFIXES: Final = (".json", ".txt")
_LINES: Final = 5


def find_truth_layouts(path: Path) -> list[BenchmarkLayout]:
    """Return the layout of a file of marked segments, by its first rows; empty if it is none."""
    try:
        if path.suffix.lower() == ".txt":
            first = list(islice(read_lines(path), _LINES))
            is_text = any(not isinstance(line, Rejected) for line in first)
            return [BenchmarkLayout.ACTIVITY_FORENSICS] if is_text else []
        if path.suffix.lower() != ".json":
            return []
        rows = [row for _, row in islice(read_json_items(path), _LINES)]
    except UnreadableSourceError:
        return []
    if any(map(is_lav_df, rows)):
        return [BenchmarkLayout.LAV_DF]
    return [BenchmarkLayout.VIF_COT] if any(map(is_vif_cot, rows)) else []
