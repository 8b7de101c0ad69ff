"""`unreel models`, and how entries of the catalogue are printed."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from unreel.api import benchmarks as api
from unreel.api import models as models_api
from unreel.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from unreel.catalogue.entries import CatalogueEntry, CatalogueFact


@click.group()
def models() -> None:
    """List published checkpoints that review videos, and what is known about each."""


@models.command("list", short_help="List the published checkpoints by name.")
@json_option
def list_(*, as_json: bool) -> None:
    """List the published checkpoints of the catalogue.

    A fact that no source states is "not stated"; one that only somebody else than the owner states
    is marked "third party".
    """
    entries = api.list_public_models()
    print_catalogue_entries(entries, ("hub_ids", "base", "licence", "access"), as_json=as_json)


@models.command(short_help="Show all facts about one checkpoint.")
@click.argument("name")
@json_option
def show(name: str, *, as_json: bool) -> None:
    """Show all facts about the checkpoint NAME, each with its mark and source, also those not stated.

    The marks are verified (the owner states it), third party (only somebody else does), measured
    (a command or function of unreel gave it) and not stated.
    """
    print_catalogue_entry(api.get_public_model(name), as_json=as_json)


@models.command(short_help="Fetch the prompt of a checkpoint's owner.")
@click.argument("name")
@json_option
def get(name: str, *, as_json: bool) -> None:
    """Fetch the prompt with which the owner of the checkpoint NAME asks it, and check the file.

    The file is fetched once, from the commit in the catalogue, and must have the SHA-256 there. It is
    never executed. `unreel eval --model NAME` then uses the prompt.
    """
    prompt = models_api.get_prompt(name)
    if as_json:
        print_json(prompt)
        return
    rows = [{"fact": name, "value": value} for name, value in prompt.items()]
    print_table(("fact", "value"), rows)


def print_catalogue_entries(
    entries: "Sequence[CatalogueEntry]", columns: Sequence[str], *, as_json: bool
) -> None:
    """Print a row for each entry with the facts named `columns`, or all facts as JSON."""
    if as_json:
        print_json([_build_document(entry) for entry in entries])
        return
    rows = []
    for entry in entries:
        facts = {name: _format_marked(fact) for name, fact in entry.iter_facts() if name in columns}
        rows.append({"name": entry.name, "protocols": _list_protocols(entry), **facts})
    print_table(("name", *columns, "protocols"), rows)


def print_catalogue_entry(entry: "CatalogueEntry", *, as_json: bool) -> None:
    """Print all facts of `entry` with their marks and sources, as a table or as JSON."""
    if as_json:
        print_json(_build_document(entry))
        return
    rows = [
        {
            "fact": name,
            "value": _format_value(fact.model_dump()["value"]),
            "mark": fact.mark,
            "source": fact.source,
        }
        for name, fact in entry.iter_facts()
    ]
    print_table(
        ("fact", "value", "mark", "source"),
        rows,
        title=f"{entry.title}; protocols: {_list_protocols(entry)}",
    )


def _build_document(entry: "CatalogueEntry") -> dict[str, object]:
    facts = [{"fact": name, **fact.model_dump()} for name, fact in entry.iter_facts()]
    return {"name": entry.name, "title": entry.title, "protocols": entry.protocols, "facts": facts}


def _list_protocols(entry: "CatalogueEntry") -> str:
    return ", ".join(entry.protocols) or "not stated"


def _format_marked(fact: "CatalogueFact[Any]") -> str:
    """Format the value of a fact, with its mark if the owner does not state it."""
    if fact.value is None:
        return str(fact.mark)
    text = _format_value(fact.model_dump()["value"])
    return text if fact.mark == "verified" else f"{text} ({fact.mark})"


def _format_value(value: object) -> str:
    match value:
        case None:
            return "not stated"
        case tuple():
            return "; ".join(map(_format_value, value))
        case Mapping():
            parts = {key: part for key, part in value.items() if part not in (None, (), {}, False)}
            return ", ".join(f"{key}: {_format_value(part)}" for key, part in parts.items())
        case _:
            return str(value)
