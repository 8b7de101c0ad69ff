"""Text of a label audit: a Markdown section, the remarks below its table, and its cells."""

from collections.abc import Iterator
from typing import Final

from pydantic import TypeAdapter

from unreel.core.estimate import Estimate, Measured
from unreel.core.safe_text import sanitise_line
from unreel.curation.audit.clip_features import AuditFeatureSet
from unreel.curation.audit.label_leaks import (
    ALARM_RATE,
    CHANCE,
    LEAK_FROM,
    FeatureSetAudit,
    LabelLeakAudit,
    LabelLeakFinding,
)

AUDIT_JSON: Final = TypeAdapter(LabelLeakAudit)
"""Serialiser of audits: `dump_json` stores an audit, `validate_json` restores it."""

_SIGHTS: Final = {
    AuditFeatureSet.METADATA: "file properties: container, codec, bit rate, resolution, frame rate, length, sound, tags",
    AuditFeatureSet.FRAME: "low-level properties of one frame",
    AuditFeatureSet.WATERMARK: "detected overlays",
    AuditFeatureSet.WINDOW: "one second of a long clip: packet sizes, key frames, cuts and noise, inside and outside of segments",
}
_SENTENCES: Final = {
    LabelLeakFinding.LEAKS: "The labels leak: a model that does not analyse the scene can separate real from generated clips.",
    LabelLeakFinding.CLEAN: "No leak was found in metadata or overlays.",
    LabelLeakFinding.INCONCLUSIVE: "No leak was proven, and the intervals do not exclude one. Add scenes, or audit more clips of both labels.",
}

ALARMS: Final = (
    "p is the fraction of datasets ({n} of the same clips with labels permuted by source, and this one) in which any model "
    "reaches the same AUC. A model is reported as leaking only at {rate} or less, so at most {rate:.0%} of datasets whose "
    "files are independent of their labels give a false alarm."
)
"""Explanation of p on the data card."""
QUESTIONS: Final = (
    "AUC answers two questions: can a reviewer that knows these creators predict the label of a new scene from this input alone "
    "(seen creators; this decides), and does that generalise to unknown creators (unseen creators; this does not decide). "
    "0.5 is chance. Below 0.5, properties that predict the label for some creators mislead for others: no leak."
)
UNGROUPED: Final = (
    "No two clips share a `group`. If some show one scene or come from one source, set `group`: of simulated datasets without a "
    "leak and without `group` for scenes of two or five clips, {alarms} gave a false alarm."
)
UNGROUPED_ALARMS: Final = "6 and 27 of 100"
"""False alarms for undeclared scenes of two and of five clips, by `benchmarks/audit_alarms.py --sizes`."""


def format_audit_markdown(audit: LabelLeakAudit) -> str:
    """Format the audit as a Markdown section of a data card."""
    return "\n".join(_iter_audit_lines(audit)) + "\n"


def _iter_audit_lines(audit: LabelLeakAudit) -> Iterator[str]:
    both = has_separate_creator_aucs(audit)
    aucs = "AUC, seen creators | AUC, unseen creators" if both else "AUC"
    yield f"**{audit.finding.value}.** {_SENTENCES[audit.finding]}"
    yield ""
    yield f"| model input | {aucs} | p | real | generated | creators | unread | finding |"
    yield "|---" * (9 if both else 8) + "|"
    for view in audit.views:
        counts = f"{view.n_real} | {view.n_generated} | {view.n_creators} | {view.n_unread}"
        finding = view.finding.value
        if view.view is AuditFeatureSet.FRAME and view.finding is LabelLeakFinding.LEAKS:
            finding = "warning"
        auc = format_auc(view.auc) + (f" | {format_auc(view.transfer)}" if view.transfer else "")
        yield f"| {_SIGHTS[view.view]} | {auc} | {format_p_value(view.p_value)} | {counts} | {finding} |"
    for note in iter_audit_notes(audit):
        yield ""
        yield note
    for view in audit.views:
        yield from _iter_feature_set_details(view)


def has_separate_creator_aucs(audit: LabelLeakAudit) -> bool:
    """Return whether the audit has two AUCs for each feature set: for seen and for unseen creators.

    Older audits have only one.
    """
    return all(view.transfer is not None for view in audit.views)


def iter_audit_notes(audit: LabelLeakAudit) -> Iterator[str]:
    """Yield the remarks that a data card prints below the table of the audit, one paragraph each."""
    if has_separate_creator_aucs(audit):
        yield QUESTIONS
    if audit.n_relabelled:
        yield ALARMS.format(n=audit.n_relabelled, rate=ALARM_RATE)
    for view in audit.views:
        if view.n_unjudged:
            yield _format_unjudged_note(view)
        if (
            view.finding is LabelLeakFinding.CLEAN
            and isinstance(view.auc, Estimate)
            and view.auc.low > CHANCE
        ):
            yield _format_above_chance_note(view, view.auc)
    if not audit.grouped:
        yield UNGROUPED.format(alarms=UNGROUPED_ALARMS)


def _format_above_chance_note(view: FeatureSetAudit, auc: Estimate) -> str:
    return (
        f"**{view.view.value}** is clean but slightly predictive: {format_auc(auc)} is above 0.5. A reviewer without other input ranks a "
        f"generated clip above a real one in {auc.value:.0%} of pairs; up to {LEAK_FROM:.0%} is not reported as a leak."
    )


def format_p_value(p_value: float | None) -> str:
    """Format the p-value as a table cell; "—" for `None`."""
    return "—" if p_value is None else f"{p_value:.3f}"


def _format_unjudged_note(view: FeatureSetAudit) -> str:
    return (
        f"{view.n_unjudged} clips could not be audited by **{view.view.value}**: without their scenes, no clips "
        "are left for fitting. Add scenes."
    )


def _iter_feature_set_details(view: FeatureSetAudit) -> Iterator[str]:
    if view.leaks:
        yield ""
        yield f"Strongest single properties in **{view.view.value}**:"
        yield ""
        yield "| property | AUC | generated | real |"
        yield "|---|---|---|---|"
        for leak in view.leaks:
            sides = f"{_escape_table_cell(leak.generated)} | {_escape_table_cell(leak.real)}"
            yield f"| {_escape_table_cell(leak.feature)} | {format_auc(leak.auc)} | {sides} |"
    if view.giveaways:
        yield ""
        yield f"{view.n_giveaways} clips are identifiable by **{view.view.value}**, for example:"
        yield ""
        for giveaway in view.giveaways:
            because = ", ".join(giveaway.because) or "no single property"
            yield sanitise_line(f"- `{giveaway.clip}` ({giveaway.label.value}): {because}")


def format_auc(auc: Measured) -> str:
    """Format the AUC with its confidence interval as a table cell, or the reason why it is missing."""
    if not isinstance(auc, Estimate):
        return _escape_table_cell(str(auc))
    return f"{auc.value:.2f} [{auc.low:.2f}, {auc.high:.2f}]"


def _escape_table_cell(text: str) -> str:
    """Escape untrusted text for a table cell, so that it cannot end the cell or start markup."""
    return "".join("\\" + c if c in "\\|`*_[]<>#" else c for c in sanitise_line(text))
