"""The knobs of a consensus, as a command was given them."""

from collections.abc import Mapping
from typing import Any

from unreel.annotation.consensus.outcome import ConsensusMethod, ConsensusRule


def read_rule(given: Mapping[str, Any]) -> ConsensusRule:
    """Return the rule from the values of `rule_options`."""
    return ConsensusRule(
        quorum=given["quorum"],
        min_overlap=given["min_overlap"],
        method=ConsensusMethod(given["method"]),
        reviews=given["reviews"],
    )
