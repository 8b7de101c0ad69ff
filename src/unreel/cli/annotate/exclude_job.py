"""Implementation of `unreel annotate exclude` and `include`, imported when they run."""

import time
from collections.abc import Mapping
from typing import Any

from unreel.annotation.exclusions import ExclusionDecision, ExclusionEffect, let_count
from unreel.annotation.ledger.connection import ledger_address, open_ledger
from unreel.core.settings import read_settings


def decide(given: Mapping[str, Any], *, counts: bool) -> ExclusionEffect:
    """Write the decision into the ledger."""
    decision = ExclusionDecision(
        campaign=given["campaign"],
        annotator=given["annotator"],
        counts=counts,
        why=given["why"],
        by=given["by"],
        at_us=time.time_ns() // 1000,
    )
    with open_ledger(ledger_address(given["ledger"], read_settings())) as ledger:
        return let_count(ledger, decision)
