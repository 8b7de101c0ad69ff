"""The value of a metric without an interval has the unit of the metric."""

import re
from dataclasses import replace

import pytest

from protocols.drawn_rows import SHAPES, draw_rows
from unreel.core.estimate import Unmeasured
from unreel.protocols.protocol import get_protocol


@pytest.mark.parametrize("instrument", ["reality", "preference"])
def test_a_bare_value_of_a_metric_in_percent_is_in_percent(instrument: str) -> None:
    protocol = get_protocol(instrument)
    n_bare = 0
    for n in (5, 12, 20):
        for shape in SHAPES:
            drawn = draw_rows(instrument, n, **SHAPES[shape])
            rows = [replace(row, source=f"scene {i % 7}") for i, row in enumerate(drawn)]
            for metric in protocol.score(rows, seed=0).metrics:
                if not isinstance(metric.value, Unmeasured) or "bare" not in metric.value.why:
                    continue
                plain = metric.name.partition(": ")[0]
                figures = [f for f in protocol.figures if plain.startswith(f.metric)]
                unit = max(figures, key=lambda figure: len(figure.metric)).unit
                found = re.search(r"bare value is [-\d.e]+(.*)$", metric.value.why)
                assert found is not None, metric
                assert found[1] == (" %" if unit == "%" else ""), metric
                n_bare += unit == "%"
    assert n_bare
