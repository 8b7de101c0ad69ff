"""Writer of the site's page `reference/http` from the OpenAPI document of the reward service."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any, Final

from unreel.rewards.service.app import create_reward_app
from unreel.rewards.service.settings import RewardServiceSettings

HEAD: Final = """# HTTP API

The API of `unreel reward serve`, from its OpenAPI document; [the page on rewards](../reward.md) explains its use, and the service has the same document
at `/openapi.json`. The dialects of [other trainers](../reward.md#trainers) are not listed."""
_REF: Final = "#/components/schemas/"
_UNUSED: Final = ("HTTPValidationError", "ValidationError")
"""Schemas that FastAPI adds; the service replies with `ErrorResponse` instead."""


def write_page() -> str:
    """Return the page: operations first, then schemas."""
    document = read_document()
    parts = [HEAD, "## Operations"]
    for path, operations in document["paths"].items():
        parts += [_write_operation(path, verb, one) for verb, one in operations.items()]
    parts.append("## Schemas")
    schemas = document["components"]["schemas"]
    parts += [_write_schema(name, schemas[name]) for name in sorted({*schemas} - {*_UNUSED})]
    return "\n\n".join(parts) + "\n"


def read_document() -> dict[str, Any]:
    """Return the OpenAPI document of a service without dialects."""
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder, "cache.sqlite"))
        app = create_reward_app(RewardServiceSettings(models=["coin"], store=store))
        try:
            return app.openapi()
        finally:
            asyncio.run(app.state.service.close())


def _write_operation(path: str, verb: str, operation: dict[str, Any]) -> str:
    lines = [f"### `{verb.upper()} {path}`", "", operation["description"], ""]
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        lines.append(f"- body `{kind}`: {_format_type(content.get('schema', {}))}")
    for parameter in operation.get("parameters", ()):
        shown = _format_type(parameter["schema"])
        lines.append(f"- {parameter['in']} `{parameter['name']}`: {shown}")
    for status, reply in sorted(operation["responses"].items()):
        if not _is_replaced(reply):
            kinds = [_format_reply(*each) for each in reply.get("content", {}).items()]
            shown = [reply["description"].rstrip("."), *([" or ".join(kinds)] if kinds else [])]
            lines.append(f"- {status}: {': '.join(shown)}")
    return "\n".join(lines)


def _is_replaced(reply: dict[str, Any]) -> bool:
    return any(name in str(reply) for name in (f"{_REF}{unused}" for unused in _UNUSED))


def _format_reply(kind: str, content: dict[str, Any]) -> str:
    return f"`{kind}` {_format_type(content.get('schema', {}))}".rstrip()


def _write_schema(name: str, schema: dict[str, Any]) -> str:
    required = schema.get("required", ())
    lines = [f"### `{name}`", "", schema.get("description", ""), ""]
    lines += ["| field | type | required | meaning |", "|---|---|---|---|"]
    for field, about in schema.get("properties", {}).items():
        needed = "yes" if field in required else "no"
        meaning = about.get("description", "")
        lines.append(f"| `{field}` | {_format_type(about)} | {needed} | {meaning} |")
    return "\n".join(lines)


def _format_type(schema: dict[str, Any]) -> str:
    """Return a schema as a short text, such as `list of [ItemRequest]`."""
    if ref := schema.get("$ref"):
        name = ref.removeprefix(_REF)
        return f"[`{name}`](#{name.lower()})"
    if options := schema.get("anyOf"):
        return " or ".join(_format_type(each) for each in options)
    kind = schema.get("type", "")
    if kind == "array":
        return f"list of {_format_type(schema['items'])}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map to {_format_type(schema['additionalProperties']) or 'any value'}"
    return kind + _format_bounds(schema)


def _format_bounds(schema: dict[str, Any]) -> str:
    names = {
        "minimum": "at least",
        "exclusiveMinimum": "more than",
        "maximum": "at most",
        "maxLength": "characters at most",
        "pattern": "pattern",
    }
    found = [f"{text} {schema[key]}" for key, text in names.items() if key in schema]
    return f" ({', '.join(found)})" if found else ""
