"""Test of an object store for `unreel doctor --store`."""

from collections.abc import Mapping

from unreel.engine.location import require_conditional_puts, resolve_location


def require_usable_object_store(named: str, storage: Mapping[str, str]) -> None:
    """Raise an error if the folder or bucket `named` lacks the conditional writes that tables need."""
    require_conditional_puts(resolve_location(named, storage))
