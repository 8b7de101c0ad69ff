"""Writer of the site's page `figures` from what the instruments and the report declare of their figures."""

from collections.abc import Iterable
from typing import Final

from unreel.protocols.metric_definitions import MetricDefinition
from unreel.protocols.protocol import PROTOCOLS, get_protocol
from unreel.report.boards.entrant_metrics import OWN

HEAD: Final = """# Figures

What each figure is, how it is calculated, and what it does where answers are missing. A report links each heading to the same words.

A figure is followed by its 95 % interval and n, the rows behind it. Clips of one scene are drawn together. Below each table the report
says how often such intervals hold the truth, and how many rest on fewer than 20 clips, scenes or creators. What was not measured stays
empty, with the reason.
"""
OWN_HEAD: Final = """## On a report only

Calculated by `unreel report` from the same stored answers.
"""


def write_page() -> str:
    """The whole page: an instrument after the other, then what the report adds."""
    parts = [HEAD]
    for name in PROTOCOLS.entries:
        asked = get_protocol(name)
        ranks = asked.figures[asked.figures.ranking]
        parts += [f"## {asked.title} (`{name}`)", f"Ranked by {ranks.title.lower()}."]
        if asked.figures.ranking_unjudged is not None:
            instead = asked.figures[asked.figures.ranking_unjudged].title.lower()
            parts[-1] += f" Where no judge scored explanations, by {instead}."
        parts += write_figures(asked.figures)
        if asked.figures.variants:
            rows = [f"| `{ending}` | {counts} |" for ending, counts in asked.figures.variants]
            parts.append("\n".join(["| a name that ends in | counts |", "|---|---|", *rows]))
    parts += [OWN_HEAD, *write_figures(OWN)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def write_figures(figures: Iterable[MetricDefinition]) -> list[str]:
    """A heading for each, and its definition as a list."""
    return [
        "\n".join(
            [
                f"### {figure.title} (`{figure.metric}`)\n",
                *(f"- {term}: {words}" for term, words in figure.definition),
            ]
        )
        for figure in figures
    ]
