"""Figures of parts of a benchmark: those that rest on little are there, and folded away."""

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra eval: pip install 'unreel[eval]'")

from report.contenders import FAKE, REAL, board_of, clip, entrant
from unreel.report.boards.board import BoardPanel, ReportBoard
from unreel.report.boards.breakdown_panels import FEW, build_creators_panel


def board_with(**sizes: int) -> ReportBoard:
    """A board over real clips and so many of each creator."""
    made = [clip(f"{name}-{i}", name) for name, n in sizes.items() for i in range(n)]
    clips = [*(clip(f"film-{i}") for i in range(FEW)), *made]
    said = {one.name: REAL if one.name.startswith("film") else FAKE for one in clips}
    return board_of(entrant("seer", clips, said))


def groups(panel: BoardPanel | None) -> tuple[list[str], list[str]]:
    """Those that are shown at once, and those behind a heading."""
    assert panel is not None
    shown = [line.cells[0].text for table in panel.tables for line in table.lines]
    behind = [line.cells[0].text for _, ts in panel.extras for t in ts for line in t.lines]
    return shown, behind


def test_groups_with_few_clips_lie_behind_one_heading_that_counts_them() -> None:
    panel = build_creators_panel(board_with(Veo=FEW, Sora=FEW - 1, Wan=2))
    assert groups(panel) == (["Veo"], ["Sora", "Wan"])
    assert panel is not None
    assert [heading for heading, _ in panel.extras] == ["Small groups, n below 10 (2)"]
    (chart,) = panel.charts
    assert {row["group"] for row in chart.spec["data"]["values"]} == {"Veo"}


def test_where_all_groups_are_large_nothing_is_folded() -> None:
    panel = build_creators_panel(board_with(Veo=FEW, Sora=FEW))
    assert groups(panel) == (["Sora", "Veo"], [])
    assert panel is not None
    assert panel.extras == ()


def test_where_all_groups_are_small_that_is_said_and_no_chart_is_drawn() -> None:
    panel = build_creators_panel(board_with(Veo=3, Sora=2))
    assert groups(panel) == ([], ["Sora", "Veo"])
    assert panel is not None
    assert panel.charts == ()
    assert panel.lead.endswith("No group has an n of 10 or more.")
