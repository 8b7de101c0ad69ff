"""Options of several commands, each with one meaning and one help text; shell completion of values."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from functools import wraps
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import click
from click.shell_completion import CompletionItem

from unreel.api.option_values import (
    fits_built_in_protocol,
    list_layout_names,
    list_model_names,
    list_protocol_names,
    list_public_benchmark_names,
)
from unreel.cli.output import print_message
from unreel.core.command_options import Option, read_field_docstrings
from unreel.core.errors import UnreadableSourceError
from unreel.core.trace import Category

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from unreel.protocols.protocol import Subject

_RUNS = "runs"
"""Default folder of the runs of `unreel eval`."""


def list_model_completions(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return shell completions for a model: names of baselines, `recorded`, and `PROVIDER/`."""
    return [CompletionItem(name) for name in list_model_names() if name.startswith(incomplete)]


def list_run_completions(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return completions for a run: the runs in the folder `runs` or, if none matches, folders."""
    folders = sorted(Path(_RUNS).iterdir()) if Path(_RUNS).is_dir() else []
    runs = [str(folder) for folder in folders if folder.is_dir()]
    items = [CompletionItem(run) for run in runs if run.startswith(incomplete)]
    return items or [CompletionItem(incomplete, type="dir")]


def list_path_completions(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return a completion item that lets the shell complete files and folders itself."""
    return [CompletionItem(incomplete, type="file")]


F = TypeVar("F", bound=Callable[..., Any])
LAYOUTS = click.Choice(list_layout_names())


class ProtocolParamType(click.Choice[str]):
    """Click parameter type for the name of a protocol; plugins are searched only if needed.

    Args:
        subject: Required subject of the protocol; any by default.
    """

    def __init__(self, subject: "Subject | None" = None) -> None:
        self._subject = subject
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """Return the names of all protocols that the option accepts."""
        return list_protocol_names(self._subject)

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if fits_built_in_protocol(value, self._subject):
            return value
        return super().convert(value, param, ctx)


class BenchmarkParamType(click.Path):
    """Click parameter type for an existing path, or the name of a public benchmark."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value) in list_public_benchmark_names() and not Path(value).exists():
            return Path(value)
        return super().convert(value, param, ctx)


class ClipPathParamType(click.Path):
    """Click type of a clip's path; it rejects URLs and accepts missing files, which commands report."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if "://" in str(value):
            from unreel.api.review_files import format_download_advice

            raise UnreadableSourceError(
                str(value),
                "is a URL, not a file, and only local clips are opened",
                format_download_advice(str(value)),
            )
        return super().convert(value, param, ctx)


_PASSWORD = re.compile(r"://[^/@]*:[^/@]+@|[?&]password=")


def _warn_of_password_in_url(
    _context: click.Context, _option: click.Parameter, address: Any
) -> Any:
    """Print a warning if the ledger's URL on the command line contains a password."""
    if address and _PASSWORD.search(address):
        print_message(
            "--ledger: every user of this machine can read this password in the list of processes. "
            "Set UNREEL_LEDGER or PGPASSWORD, or write ~/.pgpass"
        )
    return address


KINDS: Mapping[str, Mapping[str, Any]] = {
    "file": {"type": click.Path(exists=True, dir_okay=False, path_type=Path)},
    "existing text": {"type": click.Path(exists=True)},
    "existing": {"type": click.Path(exists=True, path_type=Path)},
    "existing benchmark": {"type": BenchmarkParamType(exists=True, path_type=Path)},
    "existing folder": {"type": click.Path(exists=True, file_okay=False, path_type=Path)},
    "layout": {"type": LAYOUTS},
    "category": {
        "type": click.Choice([each.value for each in Category if each is not Category.OTHER])
    },
    "strength": {"type": click.FloatRange(0, 1, min_open=True)},
    "open share": {"type": click.FloatRange(0, 1, min_open=True, max_open=True)},
    "positive number": {"type": click.FloatRange(0, min_open=True)},
    "new file": {"type": click.Path(dir_okay=False, path_type=Path)},
    "folder": {"type": click.Path(file_okay=False, path_type=Path)},
    "path": {"type": click.Path(path_type=Path)},
    "clip": {"type": ClipPathParamType()},
    "model": {"shell_complete": list_model_completions},
    "run": {"shell_complete": list_run_completions},
    "benchmark": {"shell_complete": list_path_completions},
    "protocol": {"type": ProtocolParamType()},
    "clip protocol": {"type": ProtocolParamType("clip")},
    "ledger": {"callback": _warn_of_password_in_url},
}
"""Parameters of `click.option` for each kind of field."""
S = TypeVar("S", bound="DataclassInstance")


def settings_options(settings: type[S]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds an option for each field of `settings`, a dataclass.

    The command receives one object of the class instead of the values. The help of an option is the
    docstring of its field; a tuple is a repeatable option.
    """
    notes = read_field_docstrings(settings)
    kinds = get_type_hints(settings, include_extras=True)

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def call(*args: Any, **values: Any) -> Any:
            named = {field.name: values.pop(field.name) for field in fields(settings)}
            return command(settings(**named), *args, **values)

        # Options of a class come before those of its base classes, arguments after.
        ranks = [name for cls in settings.__mro__ for name in inspect.get_annotations(cls)]
        parameters = [
            _build_parameter(field, kinds[field.name], notes.get(field.name, ""))
            for field in fields(settings)
        ]
        names = [field.name for field in fields(settings)]
        ranked = sorted(zip(names, parameters, strict=True), key=lambda pair: -ranks.index(pair[0]))
        for _, (is_argument, add) in ranked:
            call = call if is_argument else add(call)
        for is_argument, add in reversed(parameters):
            call = add(call) if is_argument else call
        return call

    return decorate


def _build_parameter(
    field: "Field[Any]", kind: Any, note: str
) -> tuple[bool, Callable[[Any], Any]]:
    """Return whether a field is an argument, and the decorator that adds the parameter."""
    option = Option()
    if get_origin(kind) is Annotated:
        kind, option = get_args(kind)
    is_repeated = get_origin(kind) is tuple
    parts = [part for part in get_args(kind) if part not in {type(None), ...}]
    word = kind if get_origin(kind) is Literal else parts[0] if parts else kind
    attributes: dict[str, Any] = {"metavar": option.metavar, **KINDS.get(option.kind, {})}
    if get_origin(word) is Literal:
        attributes["type"] = click.Choice(get_args(word))
    elif option.low is not None or option.high is not None:
        bounds: Any = click.IntRange if word is int else click.FloatRange
        attributes["type"] = bounds(option.low, option.high)
    attributes.setdefault("type", word)
    if option.is_argument:
        is_optional = field.default is not MISSING
        count = -1 if is_repeated else 1
        required = not is_optional and count == 1
        return True, click.argument(field.name, nargs=count, required=required, **attributes)
    name = option.name or "--" + field.name.replace("_", "-")
    attributes |= {"help": note, "multiple": is_repeated}
    if word is bool:
        attributes |= {"is_flag": True, "multiple": False}
        if field.default is True:
            attributes |= {"default": True, "show_default": True}
        del attributes["type"]
    elif field.default is MISSING or option.is_required:
        attributes["required"] = True
    elif field.default not in {None, "", ()}:
        attributes |= {"default": field.default, "show_default": option.default_text or True}
    elif field.default == "":
        attributes["default"] = ""
    return False, click.option(name, field.name, **attributes)
