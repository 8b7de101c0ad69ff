"""Prompts of published checkpoints, texts of their owners: fetched once, checked, and taken from their files.

A condition names such a prompt as `NAME@HASH`: the name of the checkpoint, and the beginning of the
SHA-256 of the file with its prompt.
"""

import ast
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unreel.catalogue.owner_answers import AnswerFormat, parse_owner_answer
from unreel.core.errors import (
    InvalidSettingError,
    MachineError,
    UnknownNameError,
    UnreadableSourceError,
)
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import EnvironmentSettings, read_environment_settings
from unreel.core.verdict import Verdict
from unreel.protocols.answer_text import parse_answer_text
from unreel.protocols.box_space import parse_box_space
from unreel.protocols.protocol import Mode, Protocol

if TYPE_CHECKING:  # entries take long to import, and few questions have the prompt of an owner
    from unreel.catalogue.entries import CatalogueModel, PromptReference

CLIP = "<video>"
_HASH_CHARACTERS = 12
_MAX_BYTES = 1 << 20
_TIMEOUT_S = 30.0
_VARIANT = re.compile(rf"(?P<name>[\w.-]+)@(?P<sha256>[0-9a-f]{{{_HASH_CHARACTERS}}})")
_TEXT_IN_FUNCTION = re.compile(r"(?P<function>[\w.]+)\[(?P<number>\d+)\]")
_YAML_KEY = re.compile(r"^(?P<key>\w+):[ ]*(?P<value>.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerPrompt:
    """Prompt of a checkpoint in the words of its owner."""

    variant: str
    system: str
    """System message; "" if there is none."""
    text: str
    """Message of the user, with `<video>` at the position of the clip if it is not first."""
    caption_mark: str
    """Text that the prompt of the clip's generator replaces; "" if the prompt needs none."""
    frame_time: str
    """Format of the time before each frame; "" if frames have none."""
    source: str
    """URL of the file with the prompt."""
    sha256: str
    """SHA-256 of that file."""


def format_prompt_variant(entry: "CatalogueModel") -> str:
    """Return the name of the prompt of `entry` in a condition; "" if its file is not known."""
    reference = entry.prompt and entry.prompt.value
    return f"{entry.name}@{reference.sha256[:_HASH_CHARACTERS]}" if reference else ""


def find_prompt_owner(variant: str) -> "CatalogueModel | None":
    """Return the checkpoint whose own prompt `variant` names; `None` if it names a prompt of unreel.

    Raise `InvalidSettingError` if the prompt of the catalogue is another file.
    """
    match = _VARIANT.fullmatch(variant)
    if match is None:
        return None
    from unreel.catalogue.entries import get_model

    entry = get_model(match["name"])
    if (known := format_prompt_variant(entry)) != variant:
        raise InvalidSettingError(
            "prompt",
            f"the catalogue has no prompt {variant!r}",
            f"Use {known}" if known else f"The file with the prompt of {entry.name} is not known",
        )
    return entry


def require_prompt(protocol: Protocol[Any, Any], variant: str) -> None:
    """Raise if `variant` names no prompt of `protocol`, and no checkpoint's prompt with readable answers."""
    entry = find_prompt_owner(variant)
    if entry is None:
        protocol.prompt(variant)
    elif find_answer_format(protocol.instrument.protocol, variant) is None:
        readable = [fact.value.protocol for fact in entry.answer_format if fact.value]
        raise UnknownNameError(f"protocol of the prompt of {entry.name}", protocol.instrument.protocol, readable)  # fmt: skip


def find_answer_format(protocol: str, variant: str) -> AnswerFormat | None:
    """Return the form of the answers to an owner's prompt; `None` for a prompt of unreel."""
    entry = find_prompt_owner(variant)
    formats = [fact.value for fact in entry.answer_format] if entry else []
    return next((form for form in formats if form and form.protocol == protocol), None)


def parse_answer(
    text: str,
    protocol: Protocol[Any, Any],
    *,
    prompt: str,
    mode: Mode,
    box_space: str | None,
    size: tuple[int, int],
) -> Verdict:
    """Parse an answer to the prompt variant `prompt`, which may be that of a checkpoint.

    An answer to a prompt of unreel is parsed as `mode` says, another one strictly by its form.
    """
    answer_format = find_answer_format(protocol.instrument.protocol, prompt)
    if answer_format is None:
        return parse_answer_text(
            text, protocol, prompt=prompt, mode=mode, box_space=box_space, size=size
        )
    width, height = size
    space = parse_box_space(box_space, width=width, height=height) if box_space else None
    return parse_owner_answer(text, answer_format, space)


def get_prompt_text(protocol: Protocol[Any, Any], variant: str) -> str:
    """Return the text of a prompt variant, of a checkpoint's own prompt with the system message first."""
    owner = read_owner_prompt(variant)
    if owner is None:
        return protocol.prompt(variant).text
    return f"{owner.system}\n\n{owner.text}" if owner.system else owner.text


def read_owner_prompt(variant: str) -> OwnerPrompt | None:
    """Return the fetched prompt that `variant` names; `None` if it is a prompt of unreel.

    Raise `InvalidSettingError` if the prompt was not fetched.
    """
    entry = find_prompt_owner(variant)
    if entry is None:
        return None
    prompt = find_fetched_prompt(entry)
    if prompt is None:
        raise InvalidSettingError(
            "prompt", f"{variant} was not fetched", f"Run `unreel models get {entry.name}`"
        )
    return prompt


def explain_missing_caption(variant: str, caption: str) -> str:
    """Return why the prompt `variant` cannot be sent without a `caption`; "" if it can."""
    owner = read_owner_prompt(variant)
    if owner is None or not owner.caption_mark or caption:
        return ""
    return f"{variant} needs the prompt of the clip's generator, and the benchmark has none"


def find_fetched_prompt(entry: "CatalogueModel") -> OwnerPrompt | None:
    """Return the prompt of `entry` from the cache; `None` if its file is not there, or was changed."""
    reference = entry.prompt and entry.prompt.value
    if not reference:
        return None
    file = _get_cached_file(reference, read_environment_settings())
    try:
        return _read_prompt(file, file.stat().st_mtime_ns, format_prompt_variant(entry), reference)
    except OSError:
        return None


@lru_cache(maxsize=16)  # each question reads the prompt
def _read_prompt(
    file: Path, _changed_ns: int, variant: str, reference: "PromptReference"
) -> OwnerPrompt:
    source = _require_hash(file.read_bytes(), reference, str(file))
    return _build_owner_prompt(variant, reference, source)


def fetch_owner_prompt(entry: "CatalogueModel", settings: EnvironmentSettings) -> tuple[OwnerPrompt, Path]:  # fmt: skip
    """Fetch the file with the prompt of `entry` unless it is in the cache; return the prompt and the file.

    Raises:
        InvalidSettingError: The file with the prompt is not known.
        MachineError: The server cannot be reached, or does not have the file.
        UnreadableSourceError: The file is not the one of the catalogue.
    """
    reference = entry.prompt and entry.prompt.value
    if not reference:
        raise InvalidSettingError(
            "NAME",
            f"the file with the prompt of {entry.name} is not known",
            f"`unreel models show {entry.name}` shows what is known",
        )
    file = _get_cached_file(reference, settings)
    prompt = find_fetched_prompt(entry)
    if prompt is None:
        repository = reference.repository.removeprefix("https://github.com/")
        server = settings.prompts_from.rstrip("/")
        url = f"{server}/{repository}/{reference.commit}/{reference.path}"
        source = _require_hash(_download(url), reference, url)
        prompt = _build_owner_prompt(format_prompt_variant(entry), reference, source)
        OutputDirectory(file.parent).write(file.name, source)
    return prompt, file


def _get_cached_file(reference: "PromptReference", settings: EnvironmentSettings) -> Path:
    return settings.cache_folder / "prompts" / reference.sha256


def _download(url: str) -> bytes:
    import httpx2

    from unreel.core.server_keys import parse_server_url
    from unreel.network.http_client import open_blocking_http_client, read_blocking_http_body

    server = parse_server_url(url)
    if not server.keeps_secrets:
        raise InvalidSettingError(
            "UNREEL_PROMPTS_FROM", f"{server} is not encrypted", "Use an https:// URL"
        )
    remedy = "Check the connection and UNREEL_PROMPTS_FROM, then run the command again"
    try:
        with (
            open_blocking_http_client(server, base_url="", timeout_s=_TIMEOUT_S) as client,
            client.stream("GET", url) as response,
        ):
            body = read_blocking_http_body(response, cap_bytes=_MAX_BYTES)
    except httpx2.HTTPError as error:
        raise MachineError(f"cannot fetch {url} ({type(error).__name__})", remedy) from error
    if response.status_code != HTTPStatus.OK or body is None:
        problem = f"status {response.status_code}" if body is not None else f"above {_MAX_BYTES} bytes"  # fmt: skip
        raise MachineError(f"cannot fetch {url} ({problem})", remedy)
    return body


def _require_hash(data: bytes, reference: "PromptReference", source: str) -> bytes:
    if (found := hashlib.sha256(data).hexdigest()) != reference.sha256:
        raise UnreadableSourceError(
            source,
            f"the file was changed: SHA-256 must be {reference.sha256}, got {found}",
            "Nothing of it is used",
        )
    return data


def _build_owner_prompt(variant: str, reference: "PromptReference", source: bytes) -> OwnerPrompt:
    caption_mark = reference.caption_mark or ""
    texts = [
        part if part in {CLIP, "\n"} else extract_text(source.decode(), reference.path, part, caption_mark=caption_mark)
        for part in reference.user
    ]  # fmt: skip
    text = "".join(texts)
    if reference.clip_mark:
        text = text.replace(reference.clip_mark, CLIP)
    system = ""
    if reference.system:
        system = extract_text(source.decode(), reference.path, reference.system)
    return OwnerPrompt(
        variant=variant,
        system=system,
        text=text,
        caption_mark=caption_mark,
        frame_time=reference.frame_time or "",
        source=f"{reference.repository}/blob/{reference.commit}/{reference.path}",
        sha256=reference.sha256,
    )


def extract_text(source: str, path: str, place: str, *, caption_mark: str = "") -> str:
    """Return the text at `place` in the file `path`, as `PromptReference` names places; nothing is executed.

    In an f-string, only the field `caption_mark` is allowed, and stays as it is. Raise
    `UnreadableSourceError` if there is no text, or if it depends on anything but constants.
    """
    if place == "*":
        return source
    found: list[str | None]
    if path.endswith(".py"):
        found = list(_iter_python_texts(ast.parse(source), place, caption_mark))
    else:
        found = [text for key, text in _iter_yaml_texts(source) if key == place]
    if len(found) != 1 or found[0] is None:
        problem = "no text" if not found else "no constant text" if len(found) == 1 else "several texts"  # fmt: skip
        raise UnreadableSourceError(path, f"{place} has {problem}", "Nothing of it is used")
    return found[0]


def _iter_python_texts(tree: ast.Module, place: str, caption_mark: str) -> Iterator[str | None]:
    """Yield the texts at `place`, `None` for one that is no constant."""
    in_function = _TEXT_IN_FUNCTION.fullmatch(place)
    *outer, name = (in_function["function"] if in_function else place).split(".")
    scopes: list[ast.AST] = [tree]
    for part in [*outer, name] if in_function else outer:
        scopes = [
            node
            for scope in scopes
            for node in getattr(scope, "body", [])
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name == part
        ]
    if in_function:
        for scope in scopes:
            nodes = [n for n in ast.walk(scope) if isinstance(n, ast.Constant) and isinstance(n.value, str)]  # fmt: skip
            nodes.sort(key=lambda node: (node.lineno, node.col_offset))
            yield from [str(node.value) for node in nodes][int(in_function["number"]) :][:1]
        return
    for scope in scopes:
        for node in getattr(scope, "body", []):
            targets = node.targets if isinstance(node, ast.Assign) else []
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                yield _join_constants(node.value, caption_mark)


def _join_constants(node: ast.AST, caption_mark: str) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.FormattedValue(value=ast.Name(id=name), conversion=-1, format_spec=None):
            return caption_mark if caption_mark == f"{{{name}}}" else None
        case ast.JoinedStr(values=parts):
            texts = [_join_constants(part, caption_mark) for part in parts]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            texts = [_join_constants(part, caption_mark) for part in (left, right)]
        case ast.Call(func=ast.Name(id="Template"), args=[template], keywords=[]):
            return _join_constants(template, caption_mark)
        case _:
            return None
    known = [text for text in texts if text is not None]
    return "".join(known) if len(known) == len(texts) else None


def _iter_yaml_texts(source: str) -> Iterator[tuple[str, str]]:
    """Yield the top-level keys of a YAML file with a text in double quotes or a block after `|`."""
    lines = source.splitlines()
    for number, line in enumerate(lines):
        match = _YAML_KEY.match(line)
        if match is None:
            continue
        if match["value"].startswith('"'):
            yield match["key"], str(json.loads(match["value"]))
        elif match["value"] == "|":
            block: list[str] = []
            for following in lines[number + 1 :]:
                if following.strip() and not following.startswith("  "):
                    break
                block.append(following[2:])
            yield match["key"], "\n".join(block).rstrip("\n") + "\n"
