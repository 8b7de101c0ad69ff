"""Implementation of `unreel annotate exclude` and `include`, imported when they run."""

import time
from collections.abc import Mapping
from typing import Any

from unreel.annotation.exclusions import ExclusionDecision, ExclusionEffect, let_count
from unreel.annotation.ledger.connection import open_ledger, resolve_ledger_url
from unreel.core.settings import read_settings


def store_exclusion(options: Mapping[str, Any], *, counts: bool) -> ExclusionEffect:
    """Write the decision into the ledger."""
    decision = ExclusionDecision(
        campaign=options["campaign"],
        annotator=options["annotator"],
        counts=counts,
        why=options["why"],
        by=options["by"],
        at_us=time.time_ns() // 1000,
    )
    with open_ledger(resolve_ledger_url(options["ledger"], read_settings())) as ledger:
        return let_count(ledger, decision)
