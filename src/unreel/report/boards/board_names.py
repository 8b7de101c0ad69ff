"""Names of boards and their contenders in a report of several boards."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from unreel.core.question import list_differing_fields
from unreel.report.boards.board import BoardContender, ReportBoard, short_path

ALL: Final = "all clips"


def name_boards(boards: Sequence[ReportBoard]) -> list[ReportBoard]:
    """Return the boards, each with the facts that distinguish it, so that no two names are equal."""
    located = [
        replace(board, benchmark=where)
        for board, where in zip(boards, _list_short_benchmarks(boards), strict=True)
    ]
    if len(located) == 1:
        return located
    facts = [
        (board.title, board.benchmark, board.extent or ALL, board.instrument) for board in located
    ]
    titles = Counter((title, where, extent) for title, where, extent, _ in facts)
    telling = [len(set(column)) > 1 for column in zip(*facts, strict=True)]
    telling[-1] = max(titles.values()) > 1  # the version, only where all else is alike
    conditions = list_differing_fields([e.condition for board in located for e in board.entrants])
    return [
        replace(
            board,
            told=(
                *(fact for fact, tells in zip(own, telling, strict=True) if tells),
                *_list_shared_conditions(board, conditions),
            ),
        )
        for board, own in zip(located, facts, strict=True)
    ]


def name_contenders(boards: Sequence[ReportBoard]) -> dict[int, str]:
    """Return the name of each contender, by its number in the report.

    If a reviewer is on several boards, the name includes the board's name.
    """
    boards_of = Counter(who for board in boards for who in {e.reviewer for e in board.entrants})
    return {
        contender.place: full_name(board, contender)
        if boards_of[contender.entrant.reviewer] > 1
        else contender.name
        for board in boards
        for contender in board.contenders
    }


def full_name(board: ReportBoard, contender: BoardContender) -> str:
    """Return the name next to contenders of other boards."""
    return " · ".join((contender.name, *board.told))


def _list_shared_conditions(board: ReportBoard, parts: Sequence[str]) -> list[str]:
    """Return the shared condition of all contenders of the board, of those parts."""
    own = list_differing_fields([entrant.condition for entrant in board.entrants])
    return board.entrants[0].condition.words([part for part in parts if part not in own])


def _list_short_benchmarks(boards: Sequence[ReportBoard]) -> list[str]:
    """Return the last parts of each benchmark's path, as many as distinguish them."""
    paths = [board.entrants[0].benchmark for board in boards]
    shorter = ({path: short_path(path, more=more) for path in paths} for more in itertools.count())
    told = next(short for short in shorter if len({*short.values()}) == len(short))
    return [told[path] for path in paths]
