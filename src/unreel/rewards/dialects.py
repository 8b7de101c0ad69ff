"""Dialects of the service: request formats of trainers, by name. Each is off unless the service names it."""

from typing import TYPE_CHECKING, Any, Final

from unreel.core.registry import LazyImport

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import APIRouter

ROUTERS: "Final[dict[str, Callable[[Any], APIRouter]]]" = {
    "unirl": LazyImport("unreel.rewards.trainers.unirl:build_router", "reward"),
    "flow-factory": LazyImport("unreel.rewards.trainers.flow_factory:build_router", "reward"),
    "pickle": LazyImport("unreel.rewards.trainers.pickled:build_router", "reward"),
    "pickle-remote": LazyImport("unreel.rewards.trainers.pickled:build_remote_router", "reward"),
}
"""Functions from a `RewardService` to its routes, loaded late because the service reads this table. `pickle` accepts
callers on this machine only; `pickle-remote` accepts all."""
