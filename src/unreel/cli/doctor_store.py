"""`unreel doctor --store`: an object store, tried."""

from collections.abc import Mapping

from unreel.engine.location import require_conditional_puts
from unreel.engine.resolve_location import resolve_location


def test_store(named: str, storage: Mapping[str, str]) -> None:
    """Raise where tables cannot be kept at the place that was named."""
    require_conditional_puts(resolve_location(named, storage))
