"""From a recipe's model to a reviewer that workers can build."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from unreel.core.clip import Clip, Origin
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.core.question import Condition
from unreel.engine.access import Access, local_copy
from unreel.evaluate.recipe import EvalRecipe
from unreel.media.access import media_reader
from unreel.reviewers.contract import Material, Reviewer
from unreel.reviewers.endpoint.budget import Price, read_prices
from unreel.reviewers.endpoint.keys import Contact, contact
from unreel.reviewers.endpoint.providers import read_address
from unreel.reviewers.roster import REVIEWERS
from unreel.reviewers.showing import show

if TYPE_CHECKING:  # an endpoint's client and the learners each take a second to load
    from unreel.reviewers.endpoint.retrying import Patience
    from unreel.reviewers.endpoint.reviewer import Manner
    from unreel.reviewers.floors.fitting import Specimen

FITTED: Final = ("metadata", "motion")
"""Floors that learn from the benchmark itself, without the creator of the clip they judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """Who answers: a maker of reviewers for workers, its stable name, and what its tokens cost."""

    name: str
    build: Callable[[], Reviewer]
    price: Price | None = None


@dataclass(frozen=True, slots=True)
class Learnable:
    """A clip that a floor may learn from."""

    clip: Clip
    origin: Origin
    group: str


def cast_reviewer(
    recipe: EvalRecipe, *, access: Access, learn_from: Callable[[], Iterator[Learnable]]
) -> Cast:
    """The reviewer that `recipe` names; fitted floors see `learn_from` now, in this process."""
    if "/" in recipe.model:
        return _endpoint(recipe, contact(recipe.model, key_hosts=access.settings.key_hosts))
    if recipe.model == "recorded":
        return _recorded(recipe)
    if recipe.model in FITTED:
        return _fitted(recipe, access, learn_from)
    reviewer = REVIEWERS.load(recipe.model)()
    return Cast(name=reviewer.name, build=partial(_same, reviewer))


def _same(reviewer: Reviewer) -> Reviewer:
    return reviewer


def _endpoint(recipe: EvalRecipe, asked: Contact) -> Cast:
    from unreel.reviewers.endpoint.reviewer import endpoint_name

    price = None
    if recipe.prices is not None:
        price = read_prices(Path(recipe.prices)).get(read_address(recipe.model).name)
    if recipe.max_cost_usd is not None and price is None:
        setting, problem = "max_cost_usd", f"no price of {recipe.model} is known"
        raise InvalidSettingError(setting, problem, "Name a file with its price: --prices FILE")
    name = endpoint_name(recipe.model, _manner(recipe))
    return Cast(name=name, build=partial(_open_endpoint, recipe, price, asked), price=price)


def _manner(recipe: EvalRecipe) -> "Manner":
    from unreel.reviewers.endpoint.reviewer import Manner

    return Manner(show=Material(recipe.show), max_tokens=recipe.max_tokens, family=recipe.family)


def _open_endpoint(recipe: EvalRecipe, price: Price | None, asked: Contact) -> Reviewer:
    from unreel.reviewers.endpoint.reviewer import EndpointReviewer, Limits

    return EndpointReviewer(
        recipe.model,
        api_key=asked.read_key(),
        manner=_manner(recipe),
        limits=Limits(
            max_connections=recipe.max_connections,
            max_requests=recipe.max_requests,
            max_cost_usd=recipe.max_cost_usd,
            price=price,
            patience=_patience(recipe.deadline_s),
        ),
        seed=recipe.seed,
    )


def _patience(deadline_s: float) -> "Patience":
    """Two tries of full length fit the deadline; a server that is down is waited for no longer."""
    from unreel.reviewers.endpoint.retrying import Patience

    return Patience(
        deadline_s=deadline_s, attempt_s=deadline_s / 2, outage_s=min(60.0, deadline_s / 2)
    )


def _recorded(recipe: EvalRecipe) -> Cast:
    if recipe.recorded is None:
        setting, problem = "recorded", "the model `recorded` needs the file of its answers"
        raise InvalidSettingError(setting, problem, "Name it: --recorded FILE")
    path = Path(recipe.recorded)
    name = f"recorded:{path.stem}"
    return Cast(name=name, build=partial(REVIEWERS.load("recorded"), path, name=name))


def _fitted(
    recipe: EvalRecipe, access: Access, learn_from: Callable[[], Iterator[Learnable]]
) -> Cast:
    fit: Any = REVIEWERS.load(recipe.model)
    wants = frozenset({Material.FRAMES}) if recipe.model == "motion" else frozenset()
    specimens = _specimens(learn_from(), access, condition=recipe.conditions[0], wants=wants)
    reviewer = fit(specimens, seed=recipe.seed)
    return Cast(name=reviewer.name, build=partial(_same, reviewer))


def _specimens(
    clips: Iterator[Learnable], access: Access, *, condition: Condition, wants: frozenset[Material]
) -> Iterator["Specimen"]:
    from unreel.reviewers.floors.fitting import Specimen

    with media_reader(access.settings, trusted=access.trusted) as reader:
        for learnable in clips:
            found = learnable.clip
            with local_copy(found.location, access) as file:
                exhibit = show(found, file, reader=reader, condition=condition, wants=wants)
            if isinstance(exhibit, Failure):
                continue  # it has no features; its question ends as a failure of its own
            yield Specimen(exhibit=exhibit, origin=learnable.origin, group=learnable.group)
