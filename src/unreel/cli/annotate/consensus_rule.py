"""The knobs of a consensus, as a command was given them."""

from collections.abc import Mapping
from typing import Any

from unreel.annotation.consensus.outcome import ConsensusMethod, ConsensusRule


def read_rule(options: Mapping[str, Any]) -> ConsensusRule:
    """Return the rule from the values of `rule_options`."""
    return ConsensusRule(
        quorum=options["quorum"],
        min_overlap=options["min_overlap"],
        method=ConsensusMethod(options["method"]),
        reviews=options["reviews"],
    )
