"""Routers for the request formats of trainers, by name. Each is off unless the service names it."""

from typing import TYPE_CHECKING, Final

from unreel.core.registry import LazyImport

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import APIRouter

    from unreel.rewards.service.scoring import RewardService

ROUTERS: "Final[dict[str, Callable[[RewardService], APIRouter]]]" = {
    "unirl": LazyImport("unreel.rewards.dialects.unirl:build_router", "reward"),
    "flow-factory": LazyImport("unreel.rewards.dialects.flow_factory:build_router", "reward"),
    "pickle": LazyImport("unreel.rewards.dialects.pickled:build_router", "reward"),
    "pickle-remote": LazyImport("unreel.rewards.dialects.pickled:build_remote_router", "reward"),
}
"""`pickle` accepts callers on this machine only; `pickle-remote` accepts all."""
