"""Describe a property for generated and for real clips in a few words."""

import math
from dataclasses import dataclass

import numpy as np

from unreel.curation.audit.cross_fit import Mask
from unreel.curation.audit.features import FeatureTable
from unreel.stats.sample import Array

_LOG = "log "


@dataclass(frozen=True, slots=True)
class PropertyByLabel:
    """The same property on either side."""

    generated: str
    real: str


def describe_sides(table: FeatureTable, made: Mask) -> PropertyByLabel:
    """Describe the feature that differs most between generated (`made`) and real clips.

    The description is the share or the median of each label.
    """
    measured = [i for i, is_bin in enumerate(table.is_bin) if not is_bin]
    best = max(measured, key=lambda i: _compute_rank_gap(table.raw[made, i], table.raw[~made, i]))
    column = table.raw[:, best]
    tell = _format_share if set(np.unique(column)) <= {0.0, 1.0} else _format_median
    return PropertyByLabel(
        tell(table.names[best], column[made]), tell(table.names[best], column[~made])
    )


def _compute_rank_gap(some: Array, others: Array) -> float:
    """Compute |p - 1/2|, with p the probability that a value of `some` exceeds a value of `others`."""
    larger = np.sign(some[:, None] - others[None]).mean()
    return abs(float(larger)) / 2


def _format_share(name: str, column: Array) -> str:
    return f"{column.mean():.0%} {name}"


def _format_median(name: str, column: Array) -> str:
    middle = float(np.median(column))
    if name.startswith(_LOG):
        return f"median {math.exp(middle):.3g} {name.removeprefix(_LOG)}"
    return f"median {middle:.3g} {name}"
