"""An audit as people read it and as tables keep it."""

from collections.abc import Iterator
from typing import Final

from pydantic import TypeAdapter

from unreel.core.estimate import Estimate, Measured
from unreel.core.plain import plain
from unreel.curate.audit.audit import ALARM_RATE, Audit, Finding, ViewAudit
from unreel.curate.audit.views import View

AUDIT_JSON: Final = TypeAdapter(Audit)
"""`dump_json` and `validate_json` keep an audit and bring it back."""

_SIGHTS: Final = {
    View.METADATA: "the file alone: container, codec, bit rate, size, rate, length, sound, tags",
    View.FRAME: "low-level numbers of one frame",
    View.WATERMARK: "overlays that were found",
}
_SENTENCES: Final = {
    Finding.LEAKS: "The labels leak: a model that does not look at the scene tells real from generated.",
    Finding.CLEAN: "No leak was found in metadata or overlays.",
    Finding.INCONCLUSIVE: "The clips are too few, or too unalike, to say whether the labels leak.",
}

ALARMS: Final = (
    "p is the share of sets of the same clips under labels that mean nothing ({n} of them, dealt anew by source, and this "
    "set) in which any model tells as much. A model is called leaking at {rate} or less, so at most {rate:.0%} of sets whose "
    "files have nothing to do with their labels give an alarm."
)
"""What p is, in the words of the card."""


def to_markdown(audit: Audit) -> str:
    """The audit as a section of a data card."""
    return "\n".join(_lines(audit)) + "\n"


def _lines(audit: Audit) -> Iterator[str]:
    yield f"**{audit.finding.value}.** {_SENTENCES[audit.finding]}"
    yield ""
    yield "| model sees | AUC | p | real | generated | creators | unread | finding |"
    yield "|---|---|---|---|---|---|---|---|"
    for view in audit.views:
        counts = f"{view.n_real} | {view.n_generated} | {view.n_creators} | {view.n_unread}"
        finding = view.finding.value
        if view.view is View.FRAME and view.finding is Finding.LEAKS:
            finding = "warning"
        yield f"| {_SIGHTS[view.view]} | {_number(view.auc)} | {chance(view.p_value)} | {counts} | {finding} |"
    if audit.n_relabelled:
        yield ""
        yield ALARMS.format(n=audit.n_relabelled, rate=ALARM_RATE)
    for view in audit.views:
        if view.n_unjudged:
            yield ""
            yield unjudged(view)
    for view in audit.views:
        yield from _details(view)


def chance(p_value: float | None) -> str:
    """A share of relabelled sets as a cell of a table."""
    return "—" if p_value is None else f"{p_value:.3f}"


def unjudged(view: ViewAudit) -> str:
    """Return the clips that no model could judge, with advice."""
    return (
        f"{view.n_unjudged} clips could not be judged by **{view.view.value}**: without their creator and their "
        "scenes nothing is left to learn from. More creators or scenes would help."
    )


def _details(view: ViewAudit) -> Iterator[str]:
    if view.leaks:
        yield ""
        yield f"What tells most in **{view.view.value}**, each alone:"
        yield ""
        yield "| property | AUC | generated | real |"
        yield "|---|---|---|---|"
        for leak in view.leaks:
            sides = f"{_cell(leak.generated)} | {_cell(leak.real)}"
            yield f"| {_cell(leak.feature)} | {_number(leak.auc)} | {sides} |"
    if view.giveaways:
        yield ""
        yield f"{view.n_giveaways} clips give themselves away by **{view.view.value}**, among them:"
        yield ""
        for giveaway in view.giveaways:
            because = ", ".join(giveaway.because) or "nothing single"
            yield plain(f"- `{giveaway.clip}` ({giveaway.label.value}): {because}")


def _number(auc: Measured) -> str:
    if not isinstance(auc, Estimate):
        return _cell(str(auc))
    return f"{auc.value:.2f} [{auc.low:.2f}, {auc.high:.2f}]"


def _cell(text: str) -> str:
    """Text of strangers' files inside a table: no cell ends, no markup starts."""
    return "".join("\\" + c if c in "\\|`*_[]<>#" else c for c in plain(text))
