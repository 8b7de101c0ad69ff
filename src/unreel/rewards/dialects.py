"""Routers for the request formats of trainers, by name."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import APIRouter

    from unreel.rewards.service.scoring import RewardService

ROUTERS: "dict[str, Callable[[RewardService], APIRouter]]" = {}
