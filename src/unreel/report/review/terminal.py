"""Output of a review on a terminal.

The order is: one sentence, the verdict of each reviewer, the findings in the file, then each
opinion with a small timeline.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from unreel.core.answer import Reply
from unreel.core.box import Box
from unreel.core.clip import Clip
from unreel.core.judgement import Label
from unreel.core.safe_text import sanitise_line, sanitise_lines
from unreel.core.span import convert_to_microseconds, format_seconds
from unreel.core.verdict import TraceVerdict
from unreel.evaluation.opinion import Opinion
from unreel.evaluation.review import Review
from unreel.protocols.protocol import get_protocol
from unreel.report.review.file_origin import FileOriginChecks
from unreel.report.review.opinion_text import (
    compute_reviewer_agreements,
    format_stability_lines,
    get_opinion_colour,
)
from unreel.report.review.review_result import (
    ReviewerAccuracyRecord,
    find_first_onset_us,
    format_review_headline,
    format_reviewer_accuracy,
)

_STYLES = {
    "real": "bold green",
    "generated": "bold red",
    "graded": "bold cyan",
    "failed": "bold yellow",
}
_BAR = 48
_RAW_LINES = 12
_RAW_LETTERS = 800


def render_review_for_terminal(
    review: Review, origin: FileOriginChecks, records: Sequence[ReviewerAccuracyRecord]
) -> Iterator[RenderableType]:
    """Yield the parts of a review for the terminal, the most important first."""
    name = sanitise_line(Path(review.clip.location).name)
    yield Text(f"{name}: {format_review_headline(review)}", "bold")
    yield from (Text(claim, "bold red") for claim in origin.claims)
    yield from (Text(hint, "yellow") for hint in origin.hints)
    if review.opinions:
        rows = []
        for reviewer in dict.fromkeys(opinion.reviewer for opinion in review.opinions):
            answers = [opinion for opinion in review.opinions if opinion.reviewer == reviewer]
            rows.append((sanitise_line(reviewer), "; ".join(map(_format_opinion, answers))))
            rates = dict.fromkeys(format_reviewer_accuracy(opinion, records) for opinion in answers)
            rows.append(("", f"Measured accuracy: {'; '.join(rates)}."))
            compared = filter(None, map(review.compare_with_footage, answers))
            rows.extend(("", f"Your own footage: {statement.text}") for statement in compared)
        yield from _render_section("Verdicts", rows)
    checks = [(check.name, check.says) for check in origin.checks]
    yield from _render_section("Findings in the file itself", checks)
    yield Text()
    yield from (render_opinion_for_terminal(opinion, review.clip) for opinion in review.opinions)
    lines = [f"agreement, {line}" for line in compute_reviewer_agreements(review.opinions)]
    lines += format_stability_lines(review.stabilities)
    yield from map(Text, [*lines, ""] if lines else ())


def _render_section(title: str, rows: Iterable[tuple[str, str]]) -> Iterator[RenderableType]:
    yield Text(f"\n{title}", Style(bold=True))
    yield _indent_content(_build_text_grid(rows), 2)


def _format_opinion(opinion: Opinion) -> str:
    onset_us = find_first_onset_us([opinion])
    when = "" if onset_us is None else f" from {format_seconds(onset_us)}"
    return f"{opinion.headline}{when} ({_format_protocol_title(opinion)})"


def _format_protocol_title(opinion: Opinion) -> str:
    title = get_protocol(opinion.question.instrument.protocol).title
    return f"{title[0].lower()}{title[1:]}"


def render_opinion_for_terminal(opinion: Opinion, clip: Clip) -> RenderableType:
    """Render one opinion for the terminal: verdict, reasons and timeline, or failure and raw reply."""
    head = Text()
    head.append(sanitise_line(opinion.reviewer), Style(bold=True))
    head.append(f", {_format_protocol_title(opinion)}: ", "dim")
    head.append(opinion.headline, _STYLES[get_opinion_colour(opinion)])
    lines: list[RenderableType] = [head]
    failure = opinion.problem
    if failure is not None:
        lines.append(_indent_content(Text(failure, "yellow"), 2))
        lines.extend(_render_raw_reply(opinion))
    else:
        lines.append(_indent_content(_build_text_grid(opinion.details), 2))
        lines.extend(_render_timeline(opinion, clip))
    costs = _format_reply_costs(opinion)
    lines.extend([_indent_content(Text(costs, "dim"), 2)] if costs else [])
    return Group(*lines, Text())


def _indent_content(content: RenderableType, by: int) -> Padding:
    return Padding(content, (0, 0, 0, by), expand=False)


def _build_text_grid(rows: Iterable[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(Text(name), Text(text))
    return table


def _render_raw_reply(opinion: Opinion) -> Iterator[RenderableType]:
    if not isinstance(opinion.outcome, Reply):
        return
    text = sanitise_lines(opinion.outcome.text)
    excerpt = "\n".join(text[:_RAW_LETTERS].splitlines()[:_RAW_LINES]) or "(an empty text)"
    yield _indent_content(Text("\n".join(f"| {line}" for line in excerpt.splitlines())), 2)
    if (n_left := len(text) - len(excerpt)) > 0 and text:
        yield _indent_content(Text(f"| ... {n_left} more letters: see --json or --out", "dim"), 2)


def _render_timeline(opinion: Opinion, clip: Clip) -> Iterator[RenderableType]:
    """Yield a timeline with the onset and a line of shown times; nothing without a `TraceVerdict`."""
    verdict = opinion.verdict
    if not isinstance(verdict, TraceVerdict):
        return
    length_us = max(1, convert_to_microseconds(clip.facts.video.duration_s))
    line = Text("0 ", "dim")
    start_us = verdict.start_us if verdict.label is Label.GENERATED else None
    if isinstance(start_us, int):
        before = min(_BAR - 1, _BAR * start_us // length_us)
        line.append("\u2500" * before, "dim")
        line.append("\u2503", "bold red")
        line.append("\u2501" * (_BAR - before - 1), "red")
    else:
        line.append("\u2500" * _BAR, "dim")
    line.append(f" {format_seconds(length_us)}", "dim")
    yield _indent_content(line, 2)
    frames = opinion.clip_input.frames if opinion.clip_input else ()
    if frames:
        columns = {
            min(_BAR - 1, _BAR * convert_to_microseconds(frame.at_s) // length_us)
            for frame in frames
        }
        ticks = "".join("\u00b7" if column in columns else " " for column in range(_BAR))
        yield _indent_content(Text(f"  {ticks} {len(frames)} frames sent", "dim"), 2)
    if isinstance(verdict.box, Box) and verdict.label is Label.GENERATED:
        box, width, height = verdict.box, 24, 7
        left, right = round(box.x0 * (width - 1)), max(round(box.x1 * (width - 1)), 1)
        top, bottom = round(box.y0 * (height - 1)), max(round(box.y1 * (height - 1)), 1)
        lines = ["\u250c" + "\u2500" * width + "\u2510"]
        for row in range(height):
            cells = (
                "\u2593" if left <= column <= right and top <= row <= bottom else " "
                for column in range(width)
            )
            lines.append("\u2502" + "".join(cells) + "\u2502")
        lines.append("\u2514" + "\u2500" * width + "\u2518")
        yield from (_indent_content(Text(text), 4) for text in lines)


def _format_reply_costs(opinion: Opinion) -> str:
    if not isinstance(opinion.outcome, Reply):
        return ""
    reply = opinion.outcome
    parts = []
    if reply.latency_us is not None:
        parts.append(f"answered in {format_seconds(reply.latency_us)}")
    if reply.usage is not None:
        parts.append(f"{reply.usage.input_tokens} + {reply.usage.output_tokens} tokens")
    if opinion.cost_usd is not None:
        parts.append(f"{opinion.cost_usd:.6f} USD")
    return ", ".join(parts)
