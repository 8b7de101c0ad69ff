"""Panels of ablations: effects of single changes, and biases towards real."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from unreel.arena.boards.ablations import EVERYBODY, AblationEffect
from unreel.arena.boards.bias import ReviewerBias
from unreel.report.boards.board import BoardPanel
from unreel.report.boards.tables import (
    BoardTable,
    FootnoteMarks,
    TableCell,
    TableColumn,
    TableLine,
    exact_cell,
    measured_cell,
)

_SMALLEST: Final = 0.001
_NO_LEAD: Final = "Percentage points that the first has more than the second, on the same clips."


def ablation_panels(
    ablations: Sequence[AblationEffect], leanings: Sequence[ReviewerBias]
) -> Iterator[BoardPanel]:
    """Yield one panel for each changed setting, and one panel for the bias towards real."""
    by_knob: defaultdict[str, list[AblationEffect]] = defaultdict(list)
    for ablation in ablations:
        by_knob[ablation.knob].append(ablation)
    for number, (knob, found) in enumerate(by_knob.items()):
        together = [each for each in found if each.reviewer == EVERYBODY]
        alone = [each for each in found if each.reviewer != EVERYBODY]
        yield BoardPanel(
            id=f"ablations-{number}",
            heading=knob.capitalize(),
            lead=f"{_NO_LEAD} p-values are corrected for all differences of this page.",
            tables=(_build_difference_table(together, f"{knob}, all reviewers except baselines"),),
            extras=(("Each reviewer", (_build_difference_table(alone, f"{knob}, each reviewer"),)),)
            if alone
            else (),
            is_open=True,
        )
    if leanings:
        yield BoardPanel(
            id="ablations-leaning",
            heading="Bias towards real",
            lead=(
                "How often a reviewer says real when both sides count half, and where it draws the line: above 0 it "
                "calls a clip real when in doubt, below 0 generated."
            ),
            tables=(_build_bias_table(leanings),),
        )


def _build_difference_table(found: Sequence[AblationEffect], caption: str) -> BoardTable:
    notes = FootnoteMarks()
    lines = []
    for each in found:
        cells = [
            TableCell(text=each.reviewer),
            TableCell(text=each.first),
            TableCell(text=each.second),
        ]
        cells += [TableCell(text=each.figure), measured_cell(each.difference, notes)]
        cells += [
            _build_p_cell(each.p_corrected),
            exact_cell(each.n_pairs),
            exact_cell(each.n_left_out),
        ]
        lines.append(TableLine(cells=tuple(cells)))
    words = ("Reviewer", "First", "Second", "Figure")
    numbers = ("First less second", "p, corrected", "Pairs", "Left out")
    return BoardTable(
        caption=f"Paired differences: {caption}",
        columns=(
            *(TableColumn(title=title, numbers=False) for title in words),
            *(TableColumn(title=title) for title in numbers),
        ),
        lines=tuple(lines),
        notes=notes.listed(),
    )


def _build_p_cell(p: float | None) -> TableCell:
    if p is None:
        return TableCell()
    return TableCell(text=f"{p:.3f}" if p >= _SMALLEST else f"< {_SMALLEST}", number=p)


def _build_bias_table(found: Sequence[ReviewerBias]) -> BoardTable:
    notes = FootnoteMarks()
    lines = []
    for each in found:
        cells = [TableCell(text=each.reviewer), TableCell(text=each.condition)]
        cells.append(measured_cell(each.said_real, notes))
        known = (each.criterion, each.sensitivity)
        cells += [measured_cell(measured, notes, places=2) for measured in known]
        lines.append(TableLine(cells=tuple(cells)))
    columns = [TableColumn(title=title, numbers=False) for title in ("Reviewer", "Condition")]
    columns += [
        TableColumn(title=title) for title in ("Said real, %", "Criterion c", "Sensitivity d'")
    ]
    return BoardTable(
        caption="Who leans towards real",
        columns=tuple(columns),
        lines=tuple(lines),
        notes=notes.listed(),
    )
