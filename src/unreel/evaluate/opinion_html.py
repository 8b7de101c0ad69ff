"""An opinion as a notebook shows it: the verdict beside the frames that the reviewer saw."""

from base64 import b64encode
from dataclasses import fields
from html import escape
from typing import Final

from unreel.core.box import Box
from unreel.core.failure import Failure
from unreel.core.notebook import html_table
from unreel.core.verdict import TraceVerdict, Unparsed, Verdict
from unreel.evaluate.opinion import Opinion
from unreel.reviewers.contract import ShownFrame

FRAMES: Final = 4
"""Of those that were shown; a notebook is saved with all that it shows."""
_BOX: Final = "position:absolute;border:2px solid #d00;box-sizing:border-box"


def opinion_html(opinion: Opinion) -> str:
    """Its verdict, and a few frames with the box that it names."""
    title = f"{opinion.reviewer}, {opinion.question.instrument}"
    if isinstance(opinion.outcome, Failure):
        return html_table(
            title, ("failure", ""), [(opinion.outcome.reason.value, opinion.outcome.detail)]
        )
    return html_table(title, ("", ""), _parts(opinion.verdict)) + _strip(opinion)


def _parts(verdict: Verdict | None) -> list[tuple[str, str]]:
    if verdict is None:
        return []
    return [(part.name, _spelt(getattr(verdict, part.name))) for part in fields(verdict)]


def _spelt(value: object) -> str:
    return f"not read: {value.reason.value}" if isinstance(value, Unparsed) else str(value)


def _strip(opinion: Opinion) -> str:
    shown = opinion.exhibit.frames if opinion.exhibit else ()
    every = max(1, len(shown) // FRAMES)
    box = opinion.verdict.box if isinstance(opinion.verdict, TraceVerdict) else None
    named = box if isinstance(box, Box) else None
    return "".join(_frame(frame, named) for frame in shown[::every][:FRAMES])


def _frame(frame: ShownFrame, box: Box | None) -> str:
    label = escape(f"{float(frame.at_s):.2f} s")
    source = f"data:image/jpeg;base64,{b64encode(frame.jpeg).decode()}"
    marked = "" if box is None else f'<div style="{_BOX};{_place(box)}"></div>'
    picture = f'<img src="{source}" alt="frame at {label}" style="width:100%;display:block">'
    return (
        '<figure style="display:inline-block;width:24%;margin:0 1% 0 0;position:relative">'
        f'<div style="position:relative">{picture}{marked}</div>'
        f"<figcaption>{label}</figcaption></figure>"
    )


def _place(box: Box) -> str:
    width, height = box.x1 - box.x0, box.y1 - box.y0
    edges = {"left": box.x0, "top": box.y0, "width": width, "height": height}
    return ";".join(f"{edge}:{100 * part:.2f}%" for edge, part in edges.items())
