"""Implementation of `unreel annotate exclude` and `include`, imported when they run."""

import time
from collections.abc import Mapping
from typing import Any

from unreel.annotation.exclusions import ExclusionDecision, ExclusionEffect, let_count
from unreel.annotation.ledger.connection import open_ledger, resolve_ledger_url
from unreel.core.settings import read_settings


def store_exclusion(given: Mapping[str, Any], *, counts: bool) -> ExclusionEffect:
    """Write the decision into the ledger."""
    decision = ExclusionDecision(
        campaign=given["campaign"],
        annotator=given["annotator"],
        counts=counts,
        why=given["why"],
        by=given["by"],
        at_us=time.time_ns() // 1000,
    )
    with open_ledger(resolve_ledger_url(given["ledger"], read_settings())) as ledger:
        return let_count(ledger, decision)
