"""Creators whose clips a benchmark already holds: they are played, and nothing is made."""

from unreel.core.errors import InvalidSettingError
from unreel.creators.contract import Creator
from unreel.creators.kind import CreatorEnvironment, CreatorKeys
from unreel.recipes.section import Text


class HeldKeys(CreatorKeys):
    """`kind = "frozen"`."""

    creator: Text = ""
    """As the benchmark names it; the name on the board where nothing is written."""

    def label(self, title: str) -> str:
        return self.creator or title

    def identity(self) -> str:
        return ""

    def open(self, name: str, around: CreatorEnvironment) -> Creator:  # noqa: ARG002  of the contract
        raise InvalidSettingError(
            name,
            "its clips are in the benchmark, and no more can be made",
            "Name another kind, or exclude it from generation",
        )
