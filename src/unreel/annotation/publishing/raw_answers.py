"""Write all answers and their consensus next to the benchmark, so that no judgement is lost."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from unreel.annotation.consensus.outcome import Dissent, Outcome, SettledTask
from unreel.annotation.judgements import VALUES, AnyValue
from unreel.annotation.publishing.edition import CampaignEdition
from unreel.core.output_files import OutputDirectory

CONSENSUS: Final = "consensus.jsonl"
ANNOTATIONS: Final = "annotations.jsonl"
REVIEWER: Final = "reviewer"
"""Placeholder for a person who decided without being an annotator."""


def write_originals(
    folder: OutputDirectory, edition: CampaignEdition, aliases: Mapping[str, str]
) -> None:
    """Write one line per task with its consensus and dissent, and one line per judgement."""
    _write_lines(folder, CONSENSUS, _iter_consensus_rows(edition, aliases))
    _write_lines(folder, ANNOTATIONS, _iter_annotation_rows(edition, aliases))


def _iter_consensus_rows(
    edition: CampaignEdition, aliases: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    for task in edition.tasks.values():
        found = edition.consensus.tasks.get(task.id)
        head = {"clips": list(task.names), "task": task.id}
        yield head | (
            _build_outcome_fields(found, aliases)
            if found
            else {"settled": False, "why": "not-judged"}
        )


def _build_outcome_fields(found: Outcome, aliases: Mapping[str, str]) -> dict[str, Any]:
    if not isinstance(found, SettledTask):
        return {"settled": False, "why": found.why.value, "detail": found.detail}
    return {
        "settled": True,
        "value": _convert_to_json(found.value),
        "method": found.method.value,
        "support": [aliases.get(name, REVIEWER) for name in found.support],
        "dissent": [_build_dissent_fields(each, aliases) for each in found.dissent],
        "words_of": aliases.get(found.words_of, REVIEWER) if found.words_of else "",
    }


def _build_dissent_fields(dissent: Dissent, aliases: Mapping[str, str]) -> dict[str, Any]:
    name, value = dissent
    return {"annotator": aliases.get(name, REVIEWER), "value": _convert_to_json(value)}


def _iter_annotation_rows(
    edition: CampaignEdition, aliases: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the opinions sorted by clip and alias; the order reveals neither identities nor times."""
    given = sorted(edition.opinions, key=lambda o: (o.task.names, aliases[o.annotator]))
    for opinion in given:
        yield {
            "clips": list(opinion.task.names),
            "annotator": aliases[opinion.annotator],
            "value": _convert_to_json(opinion.value),
        }


def _convert_to_json(value: AnyValue) -> Any:
    plain = VALUES.dump_python(value, mode="json")
    for trace in plain.get("traces", ()):
        trace["categories"].sort()  # a set has no order, and a file has one
    return plain


def _write_lines(folder: OutputDirectory, name: str, lines: Iterable[Mapping[str, Any]]) -> None:
    with folder.create_text(name) as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
