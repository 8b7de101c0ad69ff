"""Every figure is defined, on the generated page of figures."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from report.contenders import FAKE, clip, entrant
from unreel.protocols.metric_definitions import MetricDefinition
from unreel.protocols.protocol import PROTOCOLS, get_protocol
from unreel.report.boards.entrant_metrics import OWN

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs" / "make_figures.py"
DECLARED = [figure for name in PROTOCOLS.entries for figure in get_protocol(name).figures]
SHOWN = {
    "trace": ([clip("a"), clip("b", "Veo")], "FAKE"),
    "realism": ([clip("a", score=2), clip("b", "Veo", score=3)], "<answer>2</answer>"),
    "reality": ([clip("a"), clip("b", "Veo")], FAKE),
    "preference": ([(clip("a"), clip("b", "Veo"))], "1"),
    "locate": ([clip("a"), clip("b")], "[]"),
}


def test_the_page_has_every_declared_figure() -> None:
    spec = importlib.util.spec_from_file_location("make_figures", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.write_page()
    names = {figure.metric for figure in [*DECLARED, *OWN]}
    assert {name for name in names if f"(`{name}`)" not in page} == set()


@pytest.mark.parametrize("figure", [*DECLARED, *OWN], ids=lambda figure: figure.metric)
def test_every_figure_says_how_it_is_calculated_and_read(figure: MetricDefinition) -> None:
    lacking = [term for term, words in figure.definition if not words]
    assert lacking == [], f"declare it with the Figure {figure.metric!r}"


@pytest.mark.parametrize("name", PROTOCOLS.entries)
def test_every_metric_of_a_scorecard_is_a_figure_or_a_variant_that_is_told(name: str) -> None:
    shown, said = SHOWN[name]
    names = [one[0].name if isinstance(one, tuple) else one.name for one in shown]
    card = entrant("one", shown, dict.fromkeys(names, said), instrument=name).card
    figures = get_protocol(name).figures
    endings = [ending for ending, _ in figures.variants if not ending.startswith(":")]
    told = [figure.metric for figure in figures]
    told += [metric + ending for metric in told for ending in endings]
    unknown = [m.name for m in card.metrics if m.name.partition(": ")[0] not in told]
    assert unknown == []


def test_pooled_has_one_name_which_says_that_creators_count_alike() -> None:
    figures = get_protocol("reality").figures
    assert figures["pooled"].title == "Pooled accuracy per creator"
    assert "mean over creators" in figures["pooled"].formula
