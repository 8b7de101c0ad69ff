"""HTML of an opinion for notebooks: the verdict next to the input frames."""

from base64 import b64encode
from typing import Final

from unreel.core.answer import Reply
from unreel.core.box import Box
from unreel.core.notebook import html_table
from unreel.core.span import to_us
from unreel.core.verdict import TraceVerdict, Unparsed, Verdict
from unreel.evaluation.opinion import Opinion
from unreel.reviewers.contract import ShownFrame

FRAMES: Final = 4
"""Of those that were shown; a notebook is saved with all that it shows."""
_BOX: Final = "position:absolute;border:2px solid #d00;box-sizing:border-box"


def opinion_html(opinion: Opinion) -> str:
    """Its verdict with its reasons, or why there is none, and a few frames with the box that it names."""
    rows = [("verdict", opinion.headline), *opinion.details]
    if opinion.problem is not None:
        rows.append(("problem", opinion.problem))
        if isinstance(opinion.outcome, Reply):
            rows.append(("answer", opinion.outcome.text))
    title = f"{opinion.reviewer}, {opinion.question.instrument}"
    return html_table(title, (), rows) + _strip(opinion)


def _strip(opinion: Opinion) -> str:
    shown = opinion.exhibit.frames if opinion.exhibit else ()
    few = min(FRAMES, len(shown))
    picked = [shown[place * len(shown) // few] for place in range(few)]
    return "".join(_frame(frame, _box_at(frame, opinion.verdict)) for frame in picked)


def _box_at(frame: ShownFrame, verdict: Verdict | None) -> Box | None:
    """The box that a verdict names, from the onset that it names."""
    if not isinstance(verdict, TraceVerdict) or isinstance(verdict.box, Unparsed):
        return None
    begun = isinstance(verdict.start_us, Unparsed) or verdict.start_us <= to_us(frame.at_s)
    return verdict.box if begun else None


def _frame(frame: ShownFrame, box: Box | None) -> str:
    label = f"{float(frame.at_s):.2f} s"
    source = f"data:image/jpeg;base64,{b64encode(frame.jpeg).decode()}"
    marked = "" if box is None else f'<div style="{_BOX};{_place(box)}"></div>'
    picture = f'<img src="{source}" alt="frame at {label}" style="width:100%;display:block">'
    return (
        '<figure style="display:inline-block;width:23%;margin:0 1% 0 0">'
        f'<div style="position:relative">{picture}{marked}</div>'
        f"<figcaption>{label}</figcaption></figure>"
    )


def _place(box: Box) -> str:
    width, height = box.x1 - box.x0, box.y1 - box.y0
    edges = {"left": box.x0, "top": box.y0, "width": width, "height": height}
    return ";".join(f"{edge}:{100 * part:.2f}%" for edge, part in edges.items())
