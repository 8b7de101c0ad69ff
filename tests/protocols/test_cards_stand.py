"""Scorecards stay what they were: every figure of drawn rows, against the numbers of an earlier release.

`cards.json` holds them to the last digit but three. A formula that is meant to change is a new version of its
instrument; whoever changes one draws the file again: `PYTHONPATH=tests python
tests/protocols/test_cards_stand.py`.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from protocols.drawn_rows import INSTRUMENTS, SHAPES, draw_rows
from unreel.core.estimate import Estimate, Scorecard
from unreel.protocols.protocol import get_protocol

KEPT = Path(__file__).with_name("cards.json")
N = 150


def _card(instrument: str, shape: str) -> Scorecard:
    rows = draw_rows(instrument, N, **SHAPES[shape])
    return get_protocol(instrument).score(rows, seed=3)


def _told(scorecard: Scorecard) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for metric in scorecard.metrics:
        value = metric.value
        if isinstance(value, Estimate):
            figures[metric.name] = [value.value, value.low, value.high, value.n, value.n_clusters]
        else:
            figures[metric.name] = value.why
        figures[metric.name + " coverage"] = [metric.coverage.parsed, metric.coverage.asked]
    counts = [scorecard.n_questions, scorecard.n_answered]
    return {
        "figures": figures,
        "counts": counts,
        "failures": dict(scorecard.failures),
        "unparsed": dict(scorecard.unparsed),
        "confusion": dict(scorecard.confusion or {}),
    }


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("instrument", INSTRUMENTS)
def test_every_figure_and_interval_is_what_it_was(instrument: str, shape: str) -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8"))[f"{instrument}: {shape}"]
    told = _told(_card(instrument, shape))
    assert [*told["figures"]] == [*kept["figures"]]
    for name, figure in told.pop("figures").items():
        expected = kept["figures"][name]
        same = figure if isinstance(figure, str) else pytest.approx(figure, rel=1e-12, abs=1e-12)
        assert expected == same, name
    kept.pop("figures")
    assert told == kept


if __name__ == "__main__":
    cards = {f"{i}: {shape}": _told(_card(i, shape)) for i in INSTRUMENTS for shape in SHAPES}
    KEPT.write_text(json.dumps(cards, separators=(",", ":")) + "\n", encoding="utf-8")
