"""Panels of ablations: effects of single changes, and biases towards real."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from unreel.arena.ablations import EVERYBODY, Ablation
from unreel.arena.leaning import Leaning
from unreel.report.boards.board import Panel
from unreel.report.boards.tables import Cell, Column, Line, Notes, Table, exact_cell, measured_cell

_SMALLEST: Final = 0.001
_NO_LEAD: Final = "Percentage points that the first has more than the second, on the same clips."


def ablation_panels(ablations: Sequence[Ablation], leanings: Sequence[Leaning]) -> Iterator[Panel]:
    """A panel for each thing that was changed, and one for the bias towards real."""
    by_knob: defaultdict[str, list[Ablation]] = defaultdict(list)
    for ablation in ablations:
        by_knob[ablation.knob].append(ablation)
    for number, (knob, found) in enumerate(by_knob.items()):
        together = [each for each in found if each.reviewer == EVERYBODY]
        alone = [each for each in found if each.reviewer != EVERYBODY]
        yield Panel(
            id=f"ablations-{number}",
            heading=knob.capitalize(),
            lead=f"{_NO_LEAD} p-values are corrected for all differences of this page.",
            tables=(_differences(together, f"{knob}, all reviewers but floors"),),
            extras=(("Each reviewer", (_differences(alone, f"{knob}, each reviewer"),)),)
            if alone
            else (),
            is_open=True,
        )
    if leanings:
        yield Panel(
            id="ablations-leaning",
            heading="Bias towards real",
            lead=(
                "How often a reviewer says real when both sides count half, and where it draws the line: above 0 it "
                "calls a clip real when in doubt, below 0 generated."
            ),
            tables=(_leanings(leanings),),
        )


def _differences(found: Sequence[Ablation], caption: str) -> Table:
    notes = Notes()
    lines = []
    for each in found:
        cells = [Cell(text=each.reviewer), Cell(text=each.first), Cell(text=each.second)]
        cells += [Cell(text=each.figure), measured_cell(each.difference, notes)]
        cells += [_chance(each.p_corrected), exact_cell(each.n_pairs), exact_cell(each.n_left_out)]
        lines.append(Line(cells=tuple(cells)))
    words = ("Reviewer", "First", "Second", "Figure")
    numbers = ("First less second", "p, corrected", "Pairs", "Left out")
    return Table(
        caption=f"Paired differences: {caption}",
        columns=(
            *(Column(title=title, numbers=False) for title in words),
            *(Column(title=title) for title in numbers),
        ),
        lines=tuple(lines),
        notes=notes.listed(),
    )


def _chance(p: float | None) -> Cell:
    if p is None:
        return Cell()
    return Cell(text=f"{p:.3f}" if p >= _SMALLEST else f"< {_SMALLEST}", number=p)


def _leanings(found: Sequence[Leaning]) -> Table:
    notes = Notes()
    lines = []
    for each in found:
        cells = [Cell(text=each.reviewer), Cell(text=each.condition)]
        cells.append(measured_cell(each.said_real, notes))
        known = (each.criterion, each.sensitivity)
        cells += [measured_cell(measured, notes, places=2) for measured in known]
        lines.append(Line(cells=tuple(cells)))
    columns = [Column(title=title, numbers=False) for title in ("Reviewer", "Condition")]
    columns += [Column(title=title) for title in ("Said real, %", "Criterion c", "Sensitivity d'")]
    return Table(
        caption="Who leans towards real",
        columns=tuple(columns),
        lines=tuple(lines),
        notes=notes.listed(),
    )
