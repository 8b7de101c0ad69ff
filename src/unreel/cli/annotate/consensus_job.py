"""Implementation of `unreel annotate consensus` and `review`, imported when they run."""

import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unreel.annotation.campaign import AnnotationTask
from unreel.annotation.campaign_consensus import (
    ConsensusReviewRequest,
    find_campaign_task,
    record_consensus_review,
)
from unreel.annotation.campaign_state import read_campaign_records
from unreel.annotation.consensus.outcome import CampaignConsensus, OpenTask, Outcome, SettledTask
from unreel.annotation.consensus.review import ConsensusReviewDecision
from unreel.annotation.judgements import AnyValue, TraceAnswer
from unreel.annotation.ledger.connection import open_ledger, resolve_ledger_url
from unreel.annotation.opinion import get_categorical_answer
from unreel.api.annotation import build_consensus_rule, open_campaign
from unreel.cli.annotate import select_consensus_options
from unreel.cli.output import print_json, print_message, print_table
from unreel.core.errors import InvalidSettingError
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import read_environment_settings

_CONSENSUS_COLUMNS = ("task", "clip", "state", "answer", "method", "support", "dissent")


def print_campaign_consensus(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the consensus of each task of a campaign, and exit the process."""
    campaign = open_campaign(options["campaign"], ledger=options["ledger"])
    records, consensus = campaign.records, campaign.consensus(**select_consensus_options(options))
    outcomes = {
        id_: outcome
        for id_, outcome in consensus.tasks.items()
        if not (options["only_open"] and isinstance(outcome, SettledTask))
    }
    if options["out"] is not None:
        _write_consensus_document(options["out"], consensus, records.tasks)
    if as_json:
        print_json(_build_consensus_document(consensus, outcomes, records.tasks))
    else:
        rows = [
            _build_task_consensus_row(id_, records.tasks[id_], outcome)
            for id_, outcome in outcomes.items()
        ]
        print_table(
            _CONSENSUS_COLUMNS,
            rows,
            title=f"consensus of {options['campaign']}",
            form=options["form"],
        )
        _print_consensus_summary(consensus, n_tasks=len(records.tasks))
    sys.exit(0 if consensus.settled or not consensus.tasks else 1)


def store_consensus_review(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Store the review of a task in the ledger, and print the resulting consensus."""
    with open_ledger(resolve_ledger_url(options["ledger"], read_environment_settings())) as ledger:
        records = read_campaign_records(ledger, options["campaign"])
        task = find_campaign_task(records, options["task"])
        looked = ConsensusReviewRequest(
            task=task.id,
            verdict=_parse_review_decision(options),
            annotator=options["take"] or "",
            by=options["by"],
            why=options["why"],
            at_us=time.time_ns() // 1000,
        )
        outcome = record_consensus_review(
            ledger, records, looked, build_consensus_rule(**select_consensus_options(options))
        )
    if as_json:
        print_json(
            {
                "task": task.id,
                "clip": _format_clip_names(task),
                **_build_task_consensus_document(outcome),
            }
        )
        return
    row = _build_task_consensus_row(task.id, task, outcome)
    print_message(f"{row['clip']}: {row['state']} {row['answer']}, reviewed by {options['by']}")


def _parse_review_decision(options: Mapping[str, Any]) -> ConsensusReviewDecision:
    if bool(options["verdict"]) == bool(options["take"]):
        setting, problem = "review", "give one of --accept, --send-back and --take ANNOTATOR"
        raise InvalidSettingError(
            setting, problem, "Look at it with `unreel annotate report` first"
        )
    return ConsensusReviewDecision(options["verdict"] or ConsensusReviewDecision.TAKE)


def _build_task_consensus_row(
    id_: str, task: AnnotationTask, outcome: Outcome
) -> dict[str, object]:
    if isinstance(outcome, OpenTask):
        said = "; ".join(f"{who}: {_format_judgement(value)}" for who, value in outcome.judgements)
        state, answer, method, support = outcome.why.value, "", "", ""
        return dict(
            zip(
                _CONSENSUS_COLUMNS,
                (id_, _format_clip_names(task), state, answer, method, support, said),
                strict=True,
            )
        )
    return {
        "task": id_,
        "clip": _format_clip_names(task),
        "state": "settled",
        "answer": _format_judgement(outcome.value),
        "method": outcome.method.value,
        "support": ", ".join(outcome.support),
        "dissent": "; ".join(
            f"{who}: {_format_judgement(value)}" for who, value in outcome.dissent
        ),
    }


def _format_clip_names(task: AnnotationTask) -> str:
    return " | ".join(task.names)


def _format_judgement(value: AnyValue) -> str:
    n_faults = len(value.traces) if isinstance(value, TraceAnswer) else 0
    faults = f", {n_faults} {'fault' if n_faults == 1 else 'faults'}" if n_faults else ""
    return f"{get_categorical_answer(value)}{faults}"


def _build_task_consensus_document(outcome: Outcome) -> dict[str, object]:
    from pydantic_core import to_jsonable_python

    state = "settled" if isinstance(outcome, SettledTask) else "open"
    return {"state": state, "outcome": _sort_category_lists(to_jsonable_python(outcome))}


def _sort_category_lists(value: Any) -> Any:
    """Return a copy of a JSON document with sorted `categories`, so that equal outcomes are equal."""
    if isinstance(value, dict):
        return {
            key: sorted(part) if key == "categories" else _sort_category_lists(part)
            for key, part in value.items()
        }
    return [_sort_category_lists(part) for part in value] if isinstance(value, list) else value


def _build_consensus_document(
    result: CampaignConsensus, shown: Mapping[str, Outcome], tasks: Mapping[str, AnnotationTask]
) -> dict[str, object]:
    rows = [
        {
            "task": id_,
            "clip": _format_clip_names(tasks[id_]),
            **_build_task_consensus_document(shown[id_]),
        }
        for id_ in shown
    ]
    return {
        "interface": result.interface,
        "rule": result.rule,
        "n_tasks": len(tasks),
        "n_judged": len(result.tasks),
        "n_settled": len(result.settled),
        "weights": result.weights,
        "notes": result.notes,
        "tasks": rows,
    }


def _write_consensus_document(
    out: Path, consensus: CampaignConsensus, tasks: Mapping[str, AnnotationTask]
) -> None:
    from pydantic_core import to_json

    document = _build_consensus_document(consensus, consensus.tasks, tasks)
    OutputDirectory(out.parent).write(out.name, to_json(document, indent=2) + b"\n")


def _print_consensus_summary(result: CampaignConsensus, *, n_tasks: int) -> None:
    n_dissent = sum(bool(outcome.dissent) for outcome in result.settled.values())
    print_message(
        f"{len(result.settled)} of {len(result.tasks)} judged tasks settled, {n_dissent} of them with "
        f"dissent; {n_tasks - len(result.tasks)} not judged yet",
        *result.notes,
    )
    for why, n in Counter(outcome.why.value for outcome in result.unsettled.values()).most_common():
        print_message(f"  open: {n} {why}")
    if result.unsettled:
        print_message(
            "next: unreel annotate report shows them first; unreel annotate review settles one"
        )
