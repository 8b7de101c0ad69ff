"""What people are worth on a benchmark is kept beside its table, and read back or refused."""

from pathlib import Path

import pytest

from unreel.benchmarks.human_scores import (
    PEOPLE,
    AnnotatorScoreRow,
    HumanScores,
    build_human_score_row,
    read_human_scores,
    write_human_scores,
)
from unreel.core.errors import UnreadableSourceError
from unreel.core.estimate import Coverage, Estimate, Metric, Scorecard, Unmeasured
from unreel.core.output_files import OutputDirectory
from unreel.core.question import Instrument

_ALL = Coverage(parsed=8, asked=8)
_ACCURACY = Estimate(value=75.0, low=50.0, high=90.0, n=8, n_clusters=8)
CARD = Scorecard(
    instrument=Instrument("reality", 2),
    n_questions=8,
    n_answered=8,
    metrics=(
        Metric(name="accuracy", value=_ACCURACY, coverage=_ALL),
        Metric(name="accuracy: Veo", value=_ACCURACY, coverage=_ALL),
        Metric(name="ece", value=Unmeasured("nobody said how sure they are"), coverage=_ALL),
    ),
)


def _people() -> HumanScores:
    row = build_human_score_row("ann", "annotator", CARD, against="origin")
    return HumanScores(campaign="spring", fingerprint="1-ab", rows=(row,))


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    write_human_scores(OutputDirectory(tmp_path), _people())
    assert read_human_scores(tmp_path) == _people()
    (tmp_path / "metadata.jsonl").touch()
    assert read_human_scores(tmp_path / "metadata.jsonl") == _people()


def test_a_row_has_the_figures_of_the_whole_benchmark_and_no_other(tmp_path: Path) -> None:
    row = _people().rows[0]
    assert isinstance(row, AnnotatorScoreRow)
    assert list(row.figures) == ["accuracy", "ece"]
    assert row["accuracy"] == _ACCURACY
    assert isinstance(row["box-iou"], Unmeasured)


def test_a_benchmark_without_people_has_no_rows(tmp_path: Path) -> None:
    assert read_human_scores(tmp_path) is None


@pytest.mark.parametrize("text", ["", "[]", '{"campaign": "x", "rows": 3}', "\x00"])
def test_a_damaged_file_is_refused_with_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / PEOPLE).write_text(text)
    with pytest.raises(UnreadableSourceError, match="Publish the campaign again"):
        read_human_scores(tmp_path)


def test_a_figure_outside_its_interval_is_refused(tmp_path: Path) -> None:
    write_human_scores(OutputDirectory(tmp_path), _people())
    damaged = (tmp_path / PEOPLE).read_text().replace("75.0", "175.0")
    (tmp_path / PEOPLE).write_text(damaged)
    with pytest.raises(UnreadableSourceError):
        read_human_scores(tmp_path)


def test_a_link_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere.json"
    outside.write_text("{}")
    folder = tmp_path / "bench"
    folder.mkdir()
    (folder / PEOPLE).symlink_to(outside)
    with pytest.raises(UnreadableSourceError, match="leads out"):
        read_human_scores(folder)
