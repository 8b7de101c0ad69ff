"""Clusters of dependent answers."""

from typing import NamedTuple


class RowCluster(NamedTuple):
    """Property that a row shares with others, so that their answers are dependent."""

    scene: str
    """Scene of its clip, or the clip itself if it has no scene."""
    creator: str = ""
    """Creator of its clip; "" for a real clip, or if unknown."""
