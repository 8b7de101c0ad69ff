"""What ties answers together."""

from typing import NamedTuple


class Cluster(NamedTuple):
    """What a row has in common with others, so that their answers may stand or fall together."""

    scene: str
    """The scene that its clip shows, or the clip itself where nobody names a scene."""
    creator: str = ""
    """Who made its clip; "" for a real clip, or where nobody says."""
