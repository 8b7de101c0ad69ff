"""Check that every split contains both labels: a split with one label measures nothing."""

from collections.abc import Mapping

from unreel.core.errors import InvalidSettingError
from unreel.core.judgement import Label
from unreel.curation.freeze.section import SPLITS, FreezeSection

Tally = Mapping[tuple[str, str], int]
"""Clips by split and label."""


def find_lack(tally: Tally, section: FreezeSection) -> InvalidSettingError | None:
    """The refusal of splits that lack a label; None where each has all that `section` wants."""
    splits = [split for split, share in zip(SPLITS, section.shares, strict=True) if share]
    lacking = [
        split for split in splits for label in section.labels if not tally.get((split, label))
    ]
    if not lacking:
        return None
    counts = "; ".join(f"{split} has {format_label_counts(tally, split)}" for split in splits)
    setting, problem = "freeze", f"a split without one of the labels: {counts}"
    return InvalidSettingError(setting, problem, _remedy(tally, splits, section))


def format_label_counts(tally: Tally, split: str) -> str:
    """Return the number of clips per label of a split, as text."""
    return " and ".join(f"{tally.get((split, label), 0)} {label.value}" for label in Label)


def _remedy(tally: Tally, splits: list[str], section: FreezeSection) -> str:
    whole = {label: sum(tally.get((split, label), 0) for split in splits) for label in Label}
    absent = [label for label in section.labels if not whole[label]]
    if absent:
        there = ", ".join(f'"{label.value}"' for label in Label if whole[label])
        names = " and ".join(label.value for label in absent)
        return f"Add a source of {names} clips, or write labels = [{there}] under [freeze]"
    return (
        "Add clips or scenes, give the small splits more (for example shares = [3, 1, 1]), or leave "
        "one out (shares = [4, 0, 1])"
    )
