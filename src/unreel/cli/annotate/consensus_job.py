"""Implementation of `unreel annotate consensus`, `review`, `quality` and `publish`."""

import sys
import time
from collections import Counter
from collections.abc import Mapping
from shlex import quote
from typing import Any

from unreel.annotation.campaign import AnnotationTask
from unreel.annotation.campaign_state import (
    AnnotatorExclusionDecision,
    AnnotatorExclusionEffect,
    ConsensusReviewRequest,
    find_campaign_task,
    read_campaign_records,
    record_consensus_review,
    record_exclusion_decision,
)
from unreel.annotation.consensus.outcome import (
    CampaignConsensus,
    ConsensusReviewDecision,
    OpenTask,
    Outcome,
    SettledTask,
    get_categorical_answer,
)
from unreel.annotation.judgements import AnyValue, TraceAnswer
from unreel.annotation.ledger.connection import open_ledger, resolve_ledger_url
from unreel.annotation.quality import UNANIMOUS, UNANIMOUS_CLIPS, CampaignQuality
from unreel.api.annotation import build_consensus_rule, open_campaign
from unreel.cli.annotate import select_consensus_options
from unreel.cli.output import print_json, print_message, print_table
from unreel.core.errors import InvalidSettingError
from unreel.core.estimate import Estimate, Measured, describe_interval_coverage
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import read_environment_settings
from unreel.core.span import format_seconds

_QUALITY_COLUMNS = ("annotator", "judged", "right", "same_answer", "median_time", "alarms")


def print_annotator_quality(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the quality of each annotator, and the agreement of all."""
    campaign = open_campaign(options["campaign"], ledger=options["ledger"])
    quality = campaign.quality(passing=options["passing"], seed=options["seed"])
    if as_json:
        alarms = {who: person.alarms for who, person in quality.people.items()}
        print_json({"quality": quality, "alarms": alarms})
        return
    rows = [
        {
            "annotator": who,
            "judged": person.n_judged,
            "right": _format_estimate(person.right),
            "same_answer": _format_estimate(person.same_answer),
            "median_time": format_seconds(person.pace.median_us) if person.pace else "",
            "alarms": "; ".join(person.alarms),
        }
        for who, person in quality.people.items()
    ]
    print_table(
        _QUALITY_COLUMNS, rows, title=f"annotators of {options['campaign']}", form=options["form"]
    )
    _print_quality_summary(quality)


def _format_estimate(value: Measured) -> str:
    if isinstance(value, Estimate):
        return f"{value.value:.2f} [{value.low:.2f}, {value.high:.2f}]"
    return ""


def _print_quality_summary(quality: CampaignQuality) -> None:
    for name, value in quality.agreement.overall.items():
        print_message(f"{name}: {value}")
    rule, shared = f"{UNANIMOUS:.0%} of {UNANIMOUS_CLIPS} clips", quality.qualification.n_shared
    passes = "meets" if quality.qualification.unanimous else "does not meet"
    print_message(
        f"unanimity over {shared} clips judged by everyone {passes} VideoRealBench's rule of {rule}"
    )
    print_message(f"bias by prefilled annotations: {quality.pull}")
    accuracies = [person.right for person in quality.people.values()]
    print_message(
        describe_interval_coverage([*accuracies, *(p.same_answer for p in quality.people.values())])
    )
    if any(person.alarms for person in quality.people.values()):
        print_message(
            "next: check the alarms; unreel annotate exclude excludes an annotator's judgements"
        )


def store_annotator_exclusion(
    options: Mapping[str, Any], *, counts: bool
) -> AnnotatorExclusionEffect:
    """Store in the ledger whether an annotator's judgements count."""
    decision = AnnotatorExclusionDecision(
        campaign=options["campaign"],
        annotator=options["annotator"],
        counts=counts,
        why=options["why"],
        by=options["by"],
        at_us=time.time_ns() // 1000,
    )
    with open_ledger(resolve_ledger_url(options["ledger"], read_environment_settings())) as ledger:
        return record_exclusion_decision(ledger, decision)


def publish_campaign(given: Mapping[str, Any], *, as_json: bool) -> None:
    """Write the consensus of a campaign as a benchmark, print the result, and exit the process."""
    campaign = open_campaign(given["campaign"], ledger=given["ledger"])
    options = {name: given[name] for name in ("benchmark", "media", "keep_undecided", "seed")}
    published = campaign.publish(
        given["out"], names=given["named"], **options, **select_consensus_options(given)
    )
    if as_json:
        print_json(published)
    else:
        print_message(f"{published.n_clips} clips in {published.folder}; its card is README.md")
        if published.n_undecided:
            print_message(
                f"  kept without a decision: {published.n_undecided}, with their original labels"
            )
        for reason, n in Counter(left.why for left in published.left_out).most_common():
            print_message(f"  excluded: {n} {reason}")
        if published.people:
            print_message(
                "people.json contains the quality of the annotators: `unreel report` shows it next to models"
            )
        folder = quote(str(published.folder))
        print_message(f"next: unreel eval {folder} --protocol {published.protocol} --model coin")
    sys.exit(1 if published.left_out else 0)


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
        from pydantic_core import to_json

        out = options["out"]
        document = _build_consensus_document(consensus, consensus.tasks, records.tasks)
        OutputDirectory(out.parent).write(out.name, to_json(document, indent=2) + b"\n")
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
        if bool(options["verdict"]) == bool(options["take"]):
            raise InvalidSettingError(
                "review",
                "give one of --accept, --send-back and --take ANNOTATOR",
                "Look at it with `unreel annotate report` first",
            )
        looked = ConsensusReviewRequest(
            task=task.id,
            verdict=ConsensusReviewDecision(options["verdict"] or ConsensusReviewDecision.TAKE),
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
    consensus: CampaignConsensus, shown: Mapping[str, Outcome], tasks: Mapping[str, AnnotationTask]
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
        "interface": consensus.interface,
        "rule": consensus.rule,
        "n_tasks": len(tasks),
        "n_judged": len(consensus.tasks),
        "n_settled": len(consensus.settled),
        "weights": consensus.weights,
        "notes": consensus.notes,
        "tasks": rows,
    }


def _print_consensus_summary(consensus: CampaignConsensus, *, n_tasks: int) -> None:
    n_dissent = sum(bool(outcome.dissent) for outcome in consensus.settled.values())
    print_message(
        f"{len(consensus.settled)} of {len(consensus.tasks)} judged tasks settled, {n_dissent} of them with "
        f"dissent; {n_tasks - len(consensus.tasks)} not judged yet",
        *consensus.notes,
    )
    for why, n in Counter(
        outcome.why.value for outcome in consensus.unsettled.values()
    ).most_common():
        print_message(f"  open: {n} {why}")
    if consensus.unsettled:
        print_message(
            "next: unreel annotate report shows them first; unreel annotate review settles one"
        )
