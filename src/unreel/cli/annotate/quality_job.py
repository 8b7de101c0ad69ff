"""Implementation of `unreel annotate quality`, `exclude` and `include`, imported when they run."""

import time
from collections.abc import Mapping
from typing import Any

from unreel.annotation.campaign_state import (
    AnnotatorExclusionDecision,
    AnnotatorExclusionEffect,
    record_exclusion_decision,
)
from unreel.annotation.ledger.connection import open_ledger, resolve_ledger_url
from unreel.annotation.quality.qualification import UNANIMOUS, UNANIMOUS_CLIPS
from unreel.annotation.quality.summary import CampaignQuality, PersonQuality
from unreel.api.annotation import open_campaign
from unreel.cli.output import print_json, print_message, print_table
from unreel.core.estimate import Estimate, Measured, describe_interval_coverage
from unreel.core.settings import read_environment_settings
from unreel.core.span import format_seconds

_QUALITY_COLUMNS = (
    "annotator",
    "judged",
    "right",
    "informed",
    "same_answer",
    "median_time",
    "alarms",
)


def print_annotator_quality(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the quality of each annotator, and the agreement of all."""
    campaign = open_campaign(options["campaign"], ledger=options["ledger"])
    quality = campaign.quality(passing=options["passing"], seed=options["seed"])
    if as_json:
        alarms = {who: person.alarms for who, person in quality.people.items()}
        print_json({"quality": quality, "alarms": alarms})
        return
    rows = [_build_annotator_quality_row(who, person) for who, person in quality.people.items()]
    print_table(
        _QUALITY_COLUMNS, rows, title=f"annotators of {options['campaign']}", form=options["form"]
    )
    _print_quality_summary(quality)


def _build_annotator_quality_row(who: str, person: PersonQuality) -> dict[str, object]:
    return {
        "annotator": who,
        "judged": person.n_judged,
        "right": _format_estimate(person.right),
        "informed": _format_estimate(person.looking.informed),
        "same_answer": _format_estimate(person.same_answer),
        "median_time": format_seconds(person.pace.median_us) if person.pace else "",
        "alarms": "; ".join(person.alarms),
    }


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
