"""Small campaigns to publish: files that stand for clips, and what people said of them."""

import json
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from opinions import UnstoredOpinion
from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationTask,
    AnnotatorClipCopy,
    AnyValue,
    Campaign,
)
from unreel.annotation.consensus.consensus import compute_consensus
from unreel.annotation.consensus.outcome import ConsensusRule
from unreel.annotation.publishing.publishable_campaign import PublishableCampaign
from unreel.core.content_ids import compute_clip_id

RULE = ConsensusRule(quorum=2, min_overlap=2)


def lay_out(root: Path, names: tuple[str, ...]) -> Path:
    """A benchmark of files that stand for clips; `film-...` are real."""
    root.mkdir()
    lines = []
    for name in names:
        (root / f"{name}.mp4").write_bytes(f"the bytes of {name}".encode())
        label = "real" if name.startswith("film") else "generated"
        lines.append({"file_name": f"{name}.mp4", "name": name, "label": label, "creator": "Veo"})
    (root / "metadata.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return root


def task_of(root: Path, *names: str) -> AnnotationTask:
    """The task about these files, as they are now."""
    copies = tuple(
        AnnotatorClipCopy(
            clip=compute_clip_id(root / f"{name}.mp4"),
            location=f"{name}.mp4",
            rate=Fraction(30),
            n_frames=90,
            width=640,
            height=360,
        )
        for name in names
    )
    return AnnotationTask(names=names, copies=copies)


def campaign_of(root: Path, interface: AnnotationInterface) -> Campaign:
    """A campaign about the benchmark at `root`."""
    return Campaign(
        name="spring",
        interface=interface,
        benchmark=str(root),
        guidelines="Look twice.\n# No heading of the card",
        interface_version="v1",
    )


def edition_of(
    root: Path,
    interface: AnnotationInterface,
    said: Mapping[AnnotationTask, Mapping[str, AnyValue]],
    *idle: AnnotationTask,
) -> PublishableCampaign:
    """The campaign with what people said; nobody judged the `idle` tasks."""
    opinions = [
        UnstoredOpinion(annotator=who, task=task, value=value)
        for task, values in said.items()
        for who, value in values.items()
    ]
    return PublishableCampaign(
        campaign=campaign_of(root, interface),
        tasks={task.id: task for task in (*said, *idle)},
        opinions=opinions,
        consensus=compute_consensus(opinions, RULE, interface=interface),
    )


def renamed(campaign: PublishableCampaign, name: str) -> PublishableCampaign:
    """The same under another name."""
    return replace(campaign, campaign=replace(campaign.campaign, name=name))
