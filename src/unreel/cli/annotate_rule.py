"""The knobs of a consensus, as a command was given them."""

from collections.abc import Mapping
from typing import Any

from unreel.annotate.consensus.rule import Method, Rule


def read_rule(given: Mapping[str, Any]) -> Rule:
    """Return the rule from the values of `rule_options`."""
    return Rule(
        quorum=given["quorum"],
        min_overlap=given["min_overlap"],
        method=Method(given["method"]),
        reviews=given["reviews"],
    )
