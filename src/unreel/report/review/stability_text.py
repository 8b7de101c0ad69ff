"""Sentences about the stability of verdicts for terminal, page and annotated copy."""

from collections.abc import Sequence
from typing import Any, Final

from unreel.core.plain import plain
from unreel.evaluation.stability import OpinionStability

_SAYS: Final = {
    "steady": "The verdict is the same on all three variants.",
    "unsure": "Unsure: the verdict turns when the clip is",
    "not known": "Not known: a verdict is missing.",
}


def format_stability(found: OpinionStability) -> str:
    """One sentence about one opinion."""
    if found.state != "unsure":
        return _SAYS[found.state]
    turned = [retrial.variant.name for retrial in found.retrials if retrial.flips]
    return f"{_SAYS['unsure']} {' or '.join(turned)}."


def stability_lines(stabilities: Sequence[OpinionStability]) -> list[str]:
    """Lines for a terminal: each opinion with its variants, and why one has no verdict."""
    lines = []
    for found in stabilities:
        lines.append(f"stability, {found}")
        lines += [
            f"  when {retrial.variant.name}: {retrial.problem}"
            for retrial in found.retrials
            if retrial.problem is not None
        ]
    return lines


def stability_rows(stabilities: Sequence[OpinionStability]) -> list[dict[str, Any]]:
    """As the template shows them."""
    return [
        {
            "reviewer": plain(found.opinion.reviewer),
            "protocol": found.opinion.question.instrument.protocol,
            "headline": found.opinion.headline,
            "state": found.state,
            "says": format_stability(found),
            "retrials": [
                {
                    "name": retrial.variant.name,
                    "parameters": str(retrial.variant),
                    "headline": retrial.headline,
                    "problem": retrial.problem,
                    "flips": retrial.flips,
                    "overlap": None
                    if retrial.box_overlap is None
                    else f"{retrial.box_overlap:.2f}",
                }
                for retrial in found.retrials
            ],
        }
        for found in stabilities
    ]
