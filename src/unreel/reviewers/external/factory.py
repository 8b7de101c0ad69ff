"""Factories of reviewers that run a program or call a service. The factories can be pickled."""

import re
from collections.abc import Sequence
from functools import partial

from unreel.core.errors import InvalidSettingError
from unreel.core.server_keys import (
    find_server_key_variable,
    parse_server_url,
    require_encrypted_connection,
)
from unreel.core.settings import read_secret_variable
from unreel.reviewers.contract import Reviewer
from unreel.reviewers.external.detector_program import (
    DetectorProgramReviewer,
    resolve_external_program,
)
from unreel.reviewers.external.detector_scores import (
    DetectorScoreInterpretation,
    ExternalServiceConfig,
    format_external_reviewer_name,
)
from unreel.reviewers.factory import ReviewerFactory

COMMAND = "command:"
HTTP = "http:"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def require_external_reviewer_name(model: str) -> str:
    """Return `model`; raise `InvalidSettingError` if the name after `:` is invalid."""
    kind, _, name = model.partition(":")
    if not _NAME.fullmatch(name):
        raise InvalidSettingError(
            "model",
            f"{name!a} is not a valid name of a {kind} reviewer",
            f"Write {kind}:my-detector, letters and digits",
        )
    return model


def build_program_factory(
    model: str,
    command: Sequence[str],
    interpretation: DetectorScoreInterpretation,
    *,
    seconds: float,
    max_concurrent: int,
    gpus: float,
) -> ReviewerFactory:
    """Return the factory of `command:NAME`; its files are resolved from the current folder.

    The program gets `seconds` for a clip. It may use the GPUs if `gpus` is above 0. Raise
    `InvalidSettingError` if there is no such program.
    """
    resolved, identity = resolve_external_program(command)
    name = format_external_reviewer_name(model, interpretation, *identity)
    return ReviewerFactory(
        name=name,
        build=partial(
            DetectorProgramReviewer,
            name,
            resolved,
            interpretation,
            seconds=seconds,
            max_concurrent=max_concurrent,
            graphics=gpus > 0,
        ),
        gpus=gpus,
    )


def build_service_factory(
    model: str,
    config: ExternalServiceConfig,
    interpretation: DetectorScoreInterpretation,
    *,
    key_hosts: str,
    seed: int,
) -> ReviewerFactory:
    """Return the factory of the reviewer `http:NAME`. The URL is not part of the reviewer's name.

    Raise `InvalidSettingError` if the API key would be sent unencrypted.
    """
    server = parse_server_url(config.url)
    variable = find_server_key_variable(server, key_hosts)
    if variable is not None:
        require_encrypted_connection(server, variable)
    name = format_external_reviewer_name(model, interpretation, config.show)
    return ReviewerFactory(
        name=name,
        build=partial(
            _build_detector_service_reviewer, name, config, interpretation, variable, seed
        ),
    )


def _build_detector_service_reviewer(
    name: str,
    config: ExternalServiceConfig,
    interpretation: DetectorScoreInterpretation,
    variable: str | None,
    seed: int,
) -> Reviewer:
    from unreel.reviewers.external.detector_service import DetectorServiceReviewer

    api_key = None if variable is None else read_secret_variable(variable)
    return DetectorServiceReviewer(name, config, interpretation, api_key=api_key, seed=seed)
