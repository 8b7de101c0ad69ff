"""Kinds of reviewers: how the reviewer of a `[reviewer]` section is opened. The table is in `registry.py`."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unreel.core.errors import InvalidSettingError
from unreel.core.registry import LazyImport, require_extra
from unreel.core.server_keys import (
    find_server_key_variable,
    parse_server_url,
    require_encrypted_connection,
)
from unreel.reviewers.contract import Reviewer
from unreel.reviewers.endpoint.budget import EarlierSpending, TokenPrice
from unreel.reviewers.endpoint.model_address import LOCAL
from unreel.reviewers.endpoint.servers import ModelEndpoint, find_model_endpoint
from unreel.reviewers.external.detector_program import (
    DetectorProgramReviewer,
    resolve_external_program,
)
from unreel.reviewers.external.detector_scores import (
    DetectorScoreInterpretation,
    ExternalServiceConfig,
    format_external_reviewer_name,
)
from unreel.reviewers.factory import ReviewerFactory, wrap_open_reviewer
from unreel.reviewers.local.checkpoint import read_checkpoint
from unreel.reviewers.registry import RECORDED, REVIEWERS

if TYPE_CHECKING:  # the client of an endpoint is slow to import
    from unreel.reviewers.config import ReviewerSection
    from unreel.reviewers.endpoint.reviewer import QuestionClient

_LOCAL_REVIEWER = LazyImport("unreel.reviewers.local.reviewer:LocalReviewer", extra="local")
_SERVICE_REVIEWER = LazyImport("unreel.reviewers.external.detector_service:DetectorServiceReviewer")


def open_external_reviewer(
    section: "ReviewerSection", *, key_hosts: str, seed: int
) -> ReviewerFactory:
    """Return the factory of a program (`command:NAME`) or a service (`http:NAME`) that gives scores."""
    interpretation = DetectorScoreInterpretation(
        score_means=section.score_means, threshold=section.threshold
    )
    if section.url is None:
        command, identity = resolve_external_program(section.command)
        name = format_external_reviewer_name(section.model, interpretation, *identity)
        build = partial(
            DetectorProgramReviewer,
            name,
            command,
            interpretation,
            seconds=section.deadline_s,
            max_concurrent=section.max_connections,
            graphics=section.gpus > 0,
        )
        return ReviewerFactory(name=name, build=build, gpus=section.gpus)
    server = parse_server_url(section.url)
    variable = find_server_key_variable(server, key_hosts)
    if variable is not None:
        require_encrypted_connection(server, variable)
    config = ExternalServiceConfig(
        url=section.url,
        show="clip" if section.show == "clip" else "frames",
        max_connections=section.max_connections,
        max_requests=section.max_requests,
        retry_policy=section.patience,
    )
    name = format_external_reviewer_name(section.model, interpretation, config.show)
    service = partial(
        _SERVICE_REVIEWER, name, config, interpretation, key_variable=variable, seed=seed
    )
    return ReviewerFactory(name=name, build=service, is_metered=section.is_metered)


def open_local_reviewer(section: "ReviewerSection", **_: object) -> ReviewerFactory:
    """Return the factory of a checkpoint in a folder (`local/FOLDER`)."""
    require_extra(("torch", "torchvision", "transformers", "peft"), "local")
    if section.show == "clip":
        raise InvalidSettingError(
            "show",
            f"{section.model} is shown frames, and not the clip's file",
            "Write frames or video, or leave it out",
        )
    form = section.show if "show" in section.model_fields_set else None
    checkpoint = read_checkpoint(section.model.removeprefix(LOCAL), form=form)
    is_set = "max_tokens" in section.model_fields_set
    max_tokens = section.max_tokens if is_set else checkpoint.max_tokens
    manner: dict[str, Any] = {"max_tokens": max_tokens, "box_space": section.box_space}
    return ReviewerFactory(
        name=checkpoint.reviewer_name(**manner),
        build=partial(_LOCAL_REVIEWER, checkpoint, most=section.max_connections, **manner),
        gpus=section.gpus,
    )


def open_server_reviewer(
    section: "ReviewerSection", *, key_hosts: str, seed: int
) -> ReviewerFactory:
    """Return the factory of a model behind a server (`PROVIDER/NAME`, or a name of the catalogue)."""
    endpoints = find_model_endpoint(section.model, key_hosts=key_hosts)
    price = section.price
    if section.max_cost_usd is not None and price is None:
        raise InvalidSettingError(
            "max_cost_usd",
            f"no price of {section.model} is known",
            "Name a file with its price: --prices FILE",
        )
    build = partial(_open_endpoint_reviewer, section, price, endpoints, seed)
    return ReviewerFactory(
        name=section.served_name,
        build=build,
        price=price,
        is_metered=section.is_metered,
        max_cost_usd=section.max_cost_usd,
    )


def open_recorded_answers(section: "ReviewerSection", **_: object) -> ReviewerFactory:
    """Return the factory of answers in a file (`recorded`)."""
    if section.recorded is None:
        raise InvalidSettingError(
            "recorded",
            "the model `recorded` needs the file of its answers",
            "Name it: --recorded FILE",
        )
    path = Path(section.recorded)
    name = f"recorded:{path.stem}"
    return ReviewerFactory(name=name, build=partial(REVIEWERS.load(RECORDED), path, name=name))


def open_named_reviewer(section: "ReviewerSection", **_: object) -> ReviewerFactory:
    """Return the factory of a baseline, or of a reviewer that another package registers by its name."""
    if section.learns:
        raise InvalidSettingError(
            "model",
            f"{section.model} learns from a benchmark, and one clip is none",
            "Use it with `unreel eval`",
        )
    reviewer: Reviewer = REVIEWERS.load(section.model)()
    return wrap_open_reviewer(reviewer)


def refuse_program_object(section: "ReviewerSection", **_: object) -> ReviewerFactory:
    """Raise: an object of a Python program (`python:NAME`) is not opened by its name."""
    raise InvalidSettingError(
        "model",
        f"{section.model} is an object of a Python program",
        "Hand it over: evaluate(..., model=OBJECT)",
    )


def _open_endpoint_reviewer(
    section: "ReviewerSection",
    price: TokenPrice | None,
    endpoints: ModelEndpoint,
    seed: int,
    before: EarlierSpending = EarlierSpending(),  # noqa: B008  frozen
    client: "QuestionClient | None" = None,
) -> Reviewer:
    from unreel.reviewers.endpoint.reviewer import EndpointLimits, EndpointReviewer

    return EndpointReviewer(
        section.model,
        api_key=endpoints.read_key(),
        key_words=endpoints.key_words,
        io_format=section.manner,
        limits=EndpointLimits(
            max_connections=section.max_connections,
            max_requests=section.max_requests,
            max_cost_usd=section.max_cost_usd,
            price=price,
            before=before,
            patience=section.patience,
        ),
        seed=seed,
        client=client,
    )
