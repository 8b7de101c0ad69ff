"""What a property is like among generated and among real clips, in a few words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unreel.curate.audit.cross_fit import Subject
from unreel.curate.audit.views import is_bin
from unreel.stats.sample import Array

_LOG = "log "


@dataclass(frozen=True, slots=True)
class Sides:
    """The same property on either side."""

    generated: str
    real: str


def describe_sides(subjects: Sequence[Subject]) -> Sides:
    """The feature in which the two sides of `subjects` differ most: its share or its median."""
    names = sorted({name for subject in subjects for name in subject.features if not is_bin(name)})
    table = np.array([[subject.features.get(name, 0.0) for name in names] for subject in subjects])
    made = np.array([subject.creator is not None for subject in subjects])
    gaps = [_gap(column[made], column[~made]) for column in table.T]
    best = int(np.argmax(gaps))
    column = table[:, best]
    tell = _share if set(np.unique(column)) <= {0.0, 1.0} else _median
    return Sides(tell(names[best], column[made]), tell(names[best], column[~made]))


def _gap(some: Array, others: Array) -> float:
    """Distance from 1/2 of the chance that one of `some` is larger than one of `others`."""
    larger = np.sign(some[:, None] - others[None]).mean()
    return abs(float(larger)) / 2


def _share(name: str, column: Array) -> str:
    return f"{column.mean():.0%} {name}"


def _median(name: str, column: Array) -> str:
    middle = float(np.median(column))
    if name.startswith(_LOG):
        return f"median {math.exp(middle):.3g} {name.removeprefix(_LOG)}"
    return f"median {middle:.3g} {name}"
