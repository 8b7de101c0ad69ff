"""Config section `[reviewer]`: model, server, timeouts, cost limits, and the reviewer's factory."""

from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from unreel.catalogue.entries import CatalogueModel, find_named_checkpoint, list_model_names
from unreel.catalogue.owner_prompts import (
    find_answer_format,
    find_fetched_prompt,
    find_prompt_owner,
    format_prompt_variant,
    get_prompt_text,
)
from unreel.core.errors import InvalidSettingError, UnreelError, suggest_names
from unreel.core.question import Instrument
from unreel.core.registry import LazyImport
from unreel.core.server_keys import parse_server_url
from unreel.protocols.box_space import parse_box_space
from unreel.protocols.protocol import Mode, Protocol, asks_to_think, get_protocol
from unreel.recipes.validation import (
    MAX_PARTS,
    Connections,
    Count,
    Deadline,
    MaxTokens,
    RecipeNumberUnit,
    RecipeSection,
    Text,
)
from unreel.reviewers.condition_section import ConditionSection
from unreel.reviewers.endpoint.budget import TokenPrice, read_token_prices
from unreel.reviewers.endpoint.model_address import (
    LOCAL,
    PROVIDERS,
    is_server_model,
    parse_model_address,
)
from unreel.reviewers.endpoint.model_families import (
    RESIZED,
    ModelFamily,
    Switch,
    build_thinking_request_fields,
    detect_model_family,
    get_model_family,
    match_model_family,
)
from unreel.reviewers.external.detector_scores import (
    COMMAND,
    HTTP,
    ScoreMeans,
    require_external_reviewer_name,
)
from unreel.reviewers.factory import ReviewerFactory
from unreel.reviewers.local.checkpoint import (
    CheckpointInputSpec,
    read_checkpoint,
    read_checkpoint_input_spec,
)
from unreel.reviewers.message_parts import Showing
from unreel.reviewers.registry import (
    ENDPOINT,
    FITTED,
    LOCAL_KIND,
    NAMED_KIND,
    RECORDED,
    REVIEWER_KINDS,
    REVIEWERS,
    SERVER_KIND,
)

if TYPE_CHECKING:  # the client of an endpoint is slow to import
    from unreel.core.retry import RetryPolicy
    from unreel.reviewers.endpoint.reviewer import ModelIOFormat

_LOCAL_REVIEWER = LazyImport("unreel.reviewers.local.reviewer:LocalReviewer", extra="local")
_SERVICE_REVIEWER = LazyImport("unreel.reviewers.external.detector_service:DetectorServiceReviewer")
_UNKNOWN = "unknown"
OBJECT = "python:"
"""Prefix of the name of a reviewer object that a Python program passed."""
_OUTSIDE_FIELDS = {COMMAND: "command", HTTP: "url"}


class ReviewerSection(RecipeSection):
    """Config section of a reviewer: the settings that define the reviewer and its answers."""

    model: Text
    """Model: `provider/name[@URL]`, `local/FOLDER`, `command:NAME`, `http:NAME`, `recorded`, a baseline or plug-in."""
    recorded: Text | None = None
    """File of the answers that the model `recorded` replays."""
    max_tokens: MaxTokens = 2048
    """Maximum number of tokens of an answer."""
    show: Showing = "frames"
    """Input of the model: `frames`; `video`, the same frames as one video, for vLLM; or `clip`, the file, for a family
    that accepts it. A checkpoint has the input of its training as default."""
    family: Text | None = None
    """Model family of a model behind a server, if its name does not contain it."""
    box_space: Text | None = None
    """Coordinate space of the model's boxes, if not its family's: `pixel`, `unit`, `permille`, `model-input WxH`, or
    `resized MIN-MAX` if only the processor's resize bounds, in pixels, differ."""
    parser: Mode = "strict"
    """Parser of answers: `strict` accepts only the requested form, `lenient` also its usual variations."""
    deadline_s: Deadline = 120.0
    """Timeout of one question, including retries."""
    max_connections: Connections = 16
    """Maximum number of concurrent questions."""
    max_requests: Count | None = None
    """Maximum number of requests to the server per invocation, including retries."""
    max_cost_usd: (
        Annotated[Decimal, Field(gt=0, le=10**9), RecipeNumberUnit("US dollars")] | None
    ) = None
    """Maximum cost of all invocations for an eval or season, including failed requests; needs a price in `prices`."""
    prices: Text | None = None
    """TOML file of token prices by model; required for `max_cost_usd`."""
    gpus: Annotated[float, Field(ge=0, le=64), RecipeNumberUnit("graphics cards")] = 0.0
    """Number of GPUs per worker with `--engine ray`, for `local/FOLDER`; above 0 a `command:` program may use them."""
    command: Annotated[tuple[Text, ...], Field(max_length=MAX_PARTS)] = ()
    """Program and arguments of a model `command:NAME`; it gets the path of a clip and prints a score as JSON."""
    url: Text | None = None
    """URL of a model `http:NAME`; it gets a clip or its frames by POST and returns a score as JSON."""
    score_means: ScoreMeans = "generated"
    """Label that a high score of a `command:NAME` or `http:NAME` model means."""
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Score of such a model from which a clip gets the label `score_means`."""

    @model_validator(mode="before")
    @classmethod
    def _add_training_settings(cls, values: Any) -> Any:
        """Set missing options to those of a local checkpoint's training, or of a name in the catalogue."""
        named = (
            find_named_checkpoint(str(values.get("model"))) if isinstance(values, dict) else None
        )
        if named is not None:
            base = named.base.setting if named.base else None
            names = [parse_model_address(named.name).model, *([base] if base else [])]
            families = [match_model_family(name).name for name in names]
            known = [family for family in families if family != _UNKNOWN]
            tokens = named.max_tokens.setting if named.max_tokens else None
            settings: dict[str, Any] = {"family": known[0]} if known else {}
            if tokens:
                settings["max_tokens"] = tokens
            return settings | values
        if isinstance(values, dict) and "show" not in values:
            input_spec = _find_training_input_spec(str(values.get("model")))
            return values if input_spec is None else {**values, "show": input_spec.input}
        return values

    @field_validator("model")
    @classmethod
    def _model_is_known(cls, model: str) -> str:
        if model.startswith((COMMAND, HTTP)):
            return require_external_reviewer_name(model)
        if find_reviewer_kind(model) not in REVIEWER_KINDS.entries:
            return model  # a kind of another package, which reads the rest of the name
        if model.startswith(LOCAL):
            return model  # checked when the model is opened; a stored run is read without it
        if is_server_model(model) and not model.startswith(OBJECT):
            parse_model_address(model)
        elif not model.startswith(OBJECT) and (model == ENDPOINT or model not in REVIEWERS):
            offline = [name for name in REVIEWERS.names() if name != ENDPOINT]
            if model.partition("@")[0] in list_model_names():
                raise InvalidSettingError(
                    "model",
                    f"{model} has no id on the Hugging Face hub, or several",
                    "Write vllm/NAME@URL with the name of the model on your server",
                )
            near = get_close_matches(model, list_model_names(), n=1)
            raise InvalidSettingError(
                "model",
                f"no reviewer is named {model!r}",
                f"{suggest_names(model, [*offline, *near])}, or provider/name such as openai/gpt-5",
            )
        return model

    @field_validator("box_space")
    @classmethod
    def _space_can_be_declared(cls, space: str | None, info: ValidationInfo) -> str | None:
        served = is_server_model(str(info.data.get("model")))
        if space is not None and not (served and space.startswith(RESIZED)):
            parse_box_space(space, width=1, height=1)
        return space

    @model_validator(mode="after")
    def _outsider_is_described(self) -> "ReviewerSection":
        kind = self.model.partition(":")[0] + ":"
        for prefix, field in _OUTSIDE_FIELDS.items():
            is_set, needed = bool(getattr(self, field)), kind == prefix
            if is_set is not needed:
                raise InvalidSettingError(
                    field,
                    f"{self.model} needs it" if needed else f"only {prefix}NAME has one",
                    f"Write model = '{prefix}NAME' and {field} = ... together",
                )
        if self.url is not None:
            parse_server_url(self.url)
        return self

    @property
    def is_served(self) -> bool:
        """Return whether the reviewer is a model behind a server."""
        return is_server_model(self.model) and not self.model.startswith(OBJECT)

    @property
    def taught(self) -> CheckpointInputSpec | None:
        """Return the input format of a checkpoint that unreel trained; `None` for other reviewers."""
        return _find_training_input_spec(self.model)

    @property
    def assumes_box_space(self) -> bool:
        """Return whether pixels are assumed: neither a served model's family nor its box space is known."""
        family = self._family() if self.is_served and self.box_space is None else None
        return family is not None and family.name == "unknown" and self.family is None

    @property
    def learns(self) -> bool:
        """Return whether the reviewer is a baseline that is fitted on a benchmark before it answers."""
        return self.model in FITTED

    def opener(self, *, key_hosts: str, seed: int = 0) -> ReviewerFactory:
        """Return the factory that opens the reviewer of this section; `seed` is that of the backoff.

        `key_hosts` are the hosts that may receive the user's own API key. Raise
        `InvalidSettingError` if a required setting is missing, or the reviewer is fitted on a
        benchmark.
        """
        factory: ReviewerFactory = REVIEWER_KINDS.load(find_reviewer_kind(self.model))(
            self, key_hosts=key_hosts, seed=seed
        )
        return factory

    def resolve(self, section: ConditionSection, protocol: Protocol[Any, Any]) -> ConditionSection:
        """Return the complete condition; unset values are those of a checkpoint's training."""
        name = protocol.instrument.protocol
        input_spec = None if self.taught is None else self.taught.condition(name)
        if input_spec is not None:
            named = {name: getattr(section, name) for name in section.model_fields_set}
            section = ConditionSection(**(asdict(input_spec) | named))
        entry = find_named_checkpoint(self.model)
        if entry is not None:
            facts = {"sampling": entry.sampling, "max_pixels": entry.max_pixels}
            stated = {key: fact.setting for key, fact in facts.items() if fact and fact.setting}
            chosen = {name: getattr(section, name) for name in section.model_fields_set}
            if self._is_asked_by_owner(entry, protocol):
                stated["prompt"] = format_prompt_variant(entry)
            section = ConditionSection(**(stated | chosen))
        if find_prompt_owner(section.prompt) is not None and not self.is_served:
            raise InvalidSettingError(
                "prompt",
                f"{section.prompt} is for models behind a server, got {self.model}",
                "Use a prompt of unreel, for example prompt=paper",
            )
        return section.resolved(protocol)

    @staticmethod
    def _is_asked_by_owner(entry: CatalogueModel, protocol: Protocol[Any, Any]) -> bool:
        """Return whether the owner's prompt of `entry` is fetched, and its answers can be read."""
        variant = format_prompt_variant(entry) if entry.prompt and entry.prompt.setting else ""
        name = protocol.instrument.protocol
        return (
            bool(variant)
            and find_answer_format(name, variant) is not None
            and find_fetched_prompt(entry) is not None
        )

    def require_batches(self) -> None:
        """Raise if the reviewer is not a model of a provider that answers questions in batches."""
        if (
            not self.is_served
            or not PROVIDERS[parse_model_address(self.model).provider].has_batches
        ):
            names = ", ".join(name for name, each in PROVIDERS.items() if each.has_batches)
            raise InvalidSettingError(
                "--batch",
                f"{self.model} has no batches",
                f"Use a model of {names}, or leave it out",
            )

    def require_trained_for(self, protocols: Sequence[str]) -> None:
        """Raise if the reviewer is a checkpoint that was not trained for one of `protocols`."""
        if self.taught is None:
            return
        known = [str(Instrument(t.protocol, t.version)) for t in self.taught.instruments]
        for name in protocols:
            current = str(get_protocol(name).instrument)
            if current not in known:
                raise InvalidSettingError(
                    "protocol",
                    f"{self.model} was not trained on {current}",
                    f"Choose a protocol that it was trained on: {', '.join(known) or 'nothing is declared'}",
                )

    def require_thinking(self, condition: ConditionSection, protocol: Protocol[Any, Any]) -> None:
        """Raise if the reviewer does not support the thinking mode of `condition`."""
        if condition.thinking == "default":
            return
        problem = self.thinking_problem(
            condition.thinking, asked=asks_to_think(get_prompt_text(protocol, condition.prompt))
        )
        if problem is not None:
            raise InvalidSettingError(
                f"thinking={condition.thinking} with prompt={condition.prompt}",
                problem,
                "Leave thinking at its default, name another prompt, or name the model's family "
                "in the recipe",
            )

    def thinking_problem(self, thinking: Switch, *, asked: bool) -> str | None:
        """Return why thinking cannot be set, or `None`; `asked`: the prompt asks for thoughts."""
        if self.model == RECORDED or self.model.startswith(OBJECT):
            return None  # unknown here: it depends on the recording or the program
        family = self._family()
        if family is None:
            return f"{self.model} does not think" if thinking == "on" else None
        switched = build_thinking_request_fields(family, thinking, asked=asked)
        return switched if isinstance(switched, str) else None

    def _family(self) -> ModelFamily | None:
        """Return the model family; `None` if the reviewer is no model or its checkpoint is unreadable."""
        if self.is_served:
            return detect_model_family(parse_model_address(self.model), self.family)
        if not self.model.startswith(LOCAL):
            return None
        try:
            return get_model_family(read_checkpoint(self.model.removeprefix(LOCAL)).taught.family)
        except UnreelError:
            return None

    @property
    def is_metered(self) -> bool:
        """Return whether requests or costs are counted towards a limit."""
        return self.max_cost_usd is not None or self.max_requests is not None

    @property
    def served_name(self) -> str:
        """Return the stable name of a model behind a server; the API key is not read."""
        from unreel.reviewers.endpoint.reviewer import format_endpoint_model_name

        return format_endpoint_model_name(self.model, self.manner)

    @property
    def price(self) -> TokenPrice | None:
        """Return the token price of a model behind a server; `None` if no file contains it."""
        if self.prices is None or not self.is_served:
            return None
        return read_token_prices(Path(self.prices)).get(parse_model_address(self.model).name)

    @property
    def manner(self) -> "ModelIOFormat":
        """Return the input and output format of the model: shown input, token limit, family and box space."""
        from unreel.reviewers.endpoint.reviewer import ModelIOFormat

        entry = find_named_checkpoint(self.model)
        stated = entry.temperature.setting if entry and entry.temperature else None
        return ModelIOFormat(
            show=self.show,
            max_tokens=self.max_tokens,
            family=self.family,
            box_space=self.box_space,
            temperature=0.0 if stated is None else stated,
        )

    @property
    def patience(self) -> "RetryPolicy":
        """Return the retry policy: two full attempts; outages wait half the deadline, 60 s at most."""
        from unreel.core.retry import RetryPolicy

        half_s = self.deadline_s / 2
        return RetryPolicy(deadline_s=self.deadline_s, attempt_s=half_s, outage_s=min(60.0, half_s))


def _find_training_input_spec(model: str) -> CheckpointInputSpec | None:
    folder = Path(model.removeprefix(LOCAL)).expanduser()
    try:
        return read_checkpoint_input_spec(folder) if model.startswith(LOCAL) else None
    except (UnreelError, OSError, ValueError):
        return None  # reported when the model is opened; a stored run is read without it


def find_reviewer_kind(model: str) -> str:
    """Return the kind of reviewer that `model` names: `KIND:NAME`, a folder, a server's model or a name."""
    prefix, colon, _ = model.partition(":")
    if colon and "/" not in prefix and "@" not in prefix and prefix in REVIEWER_KINDS:
        return prefix
    if model.startswith(LOCAL):
        return LOCAL_KIND
    if is_server_model(model):
        return SERVER_KIND
    return RECORDED if model == RECORDED else NAMED_KIND
