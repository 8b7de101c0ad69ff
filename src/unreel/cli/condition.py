"""Options for the model input: `--condition`, `--nframe`, `--fps`."""

from collections.abc import Mapping, Sequence

from unreel.core.errors import InvalidSettingError


def read_conditions(
    given: Sequence[str], *, nframe: int | None, fps: str | None
) -> list[Mapping[str, str]] | None:
    """The conditions typed, with the two short forms below each; `None` where nothing was typed."""
    if nframe is not None and fps is not None:
        option, remedy = "--nframe", "Give one of --nframe and --fps"
        raise InvalidSettingError(option, "cannot be combined with --fps", remedy)
    plan = f"uniform-{nframe}" if nframe else f"fps-{fps}" if fps else None
    short = {} if plan is None else {"sampling": plan}
    if not given:
        return [short] if short else None
    return [short | _read_condition(text) for text in given]


def _read_condition(text: str) -> dict[str, str]:
    parts = [part.partition("=") for part in text.split(",")]
    if not all(name and value for name, _, value in parts):
        option, remedy = "--condition", "Write NAME=VALUE,NAME=VALUE, for example sampling=paper-8"
        raise InvalidSettingError(option, f"cannot use {text!r}", remedy)
    return {name: value for name, _, value in parts}
