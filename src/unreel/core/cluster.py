"""Clusters of dependent answers."""

from typing import NamedTuple


class RowCluster(NamedTuple):
    """Property that a row shares with others, so that their answers are dependent."""

    scene: str
    """The scene that its clip shows, or the clip itself where nobody names a scene."""
    creator: str = ""
    """Who made its clip; "" for a real clip, or where nobody says."""
