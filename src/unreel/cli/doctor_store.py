"""Test of an object store for `unreel doctor --store`."""

from collections.abc import Mapping

from unreel.engine.location import require_conditional_puts
from unreel.engine.resolve_location import resolve_location


def require_usable_store(named: str, storage: Mapping[str, str]) -> None:
    """Raise if tables cannot be stored safely in the folder or bucket `named`."""
    require_conditional_puts(resolve_location(named, storage))
