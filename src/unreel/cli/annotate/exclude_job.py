"""Implementation of `unreel annotate exclude` and `include`, imported when they run."""

import time
from collections.abc import Mapping
from typing import Any

from unreel.annotation.campaign_state import (
    AnnotatorExclusionDecision,
    AnnotatorExclusionEffect,
    record_exclusion_decision,
)
from unreel.annotation.ledger.connection import open_ledger, resolve_ledger_url
from unreel.core.settings import read_environment_settings


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
