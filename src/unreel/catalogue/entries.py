"""Entries of the catalogue: public benchmarks and published checkpoints, each fact with its source.

An entry is a TOML file in `benchmarks/` or `models/`; its name is the name of the file. A fact that
no source states is left out of the file, or has the mark "not stated" and the source that was read.
"""

import tomllib
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import AfterValidator, Field, model_validator

from unreel.catalogue.names import list_entry_names
from unreel.catalogue.owner_answers import AnswerFormat, require_protocol
from unreel.core.errors import UnknownNameError
from unreel.protocols.protocol import Mode
from unreel.recipes.validation import Line, RecipeSection, validate_recipe_sections

NO_SOURCE = "no source found"


class FactMark(StrEnum):
    """Origin of a fact: who states it, or that nobody does."""

    VERIFIED = "verified"
    """A page or file of the owner states it."""
    THIRD_PARTY = "third party"
    """Only somebody else's code or note states it."""
    MEASURED = "measured"
    """It is the result of a command or function of unreel."""
    NOT_STATED = "not stated"
    """No source that was read states it."""


Value = TypeVar("Value")


class CatalogueFact(RecipeSection, Generic[Value]):
    """One fact with its mark and source; it has no value if the mark is "not stated"."""

    mark: FactMark
    source: Line
    """URL or document that states the fact; of a fact that is not stated, what was read."""
    value: Value | None = None

    @property
    def setting(self) -> Value | None:
        """Return the value if the owner states it or it was measured; only then it is a setting."""
        return self.value if self.mark in {FactMark.VERIFIED, FactMark.MEASURED} else None

    @model_validator(mode="after")
    def _require_value_or_mark(self) -> "CatalogueFact[Value]":
        if (self.value is None) is not (self.mark is FactMark.NOT_STATED):
            raise ValueError(
                f"a fact has a value or the mark {FactMark.NOT_STATED.value!r}, got {self.value!r} and {self.mark.value!r}"
            )
        return self


Protocols = tuple[Annotated[Line, AfterValidator(require_protocol)], ...]
Lines = Annotated[tuple[Line, ...], Field(min_length=1)]
HubIds = Annotated[
    tuple[Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")], ...], Field(min_length=1)
]
TextFact = CatalogueFact[Line] | None
LinesFact = CatalogueFact[Lines] | None


class CatalogueEntry(RecipeSection):
    """Fields that benchmarks and checkpoints have in common; a fact that is `None` is not stated."""

    SETTINGS: ClassVar = frozenset(
        {"name", "title", "protocols", "download", "evaluation", "by_hand"}
    )
    """Fields that the catalogue chooses, which need no source."""
    name: Line
    title: Line
    protocols: Protocols = ()
    """Protocols of unreel for which the entry is useful; empty if none is, or if that is not known."""
    hub_ids: CatalogueFact[HubIds] | None = None
    """Ids on the Hugging Face hub: of data sets for a benchmark, of models for a checkpoint."""
    elsewhere: TextFact = None
    """Other places of the files, for example ModelScope."""
    revision: CatalogueFact[Annotated[str, Field(pattern=r"^[0-9a-f]{7,40}$")]] | None = None
    """Commit on the hub; it may be known only as a short hash."""
    licence: TextFact = None
    access: CatalogueFact[Literal["gated", "not gated"]] | None = None
    size: TextFact = None
    paper: TextFact = None
    published: tuple[CatalogueFact[Line], ...] = ()
    quirks: tuple[CatalogueFact[Line], ...] = ()

    def iter_facts(self) -> Iterator[tuple[str, CatalogueFact[Any]]]:
        """Yield the facts by name in the order of the schema; a missing one is "not stated"."""
        for field in type(self).model_fields:
            if field in CatalogueEntry.SETTINGS:
                continue
            value = getattr(self, field)
            facts = value if isinstance(value, tuple) else (value,) if value else ()
            for fact in facts or (CatalogueFact[Line](mark=FactMark.NOT_STATED, source=NO_SOURCE),):
                yield field, fact


class LinkedFile(RecipeSection):
    """A file of a benchmark that is not on the hub."""

    url: Line
    path: Line
    """Path below the folder of the download."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class HubDownload(RecipeSection):
    """Files of the first data set in `hub_ids` that unreel downloads, and how it opens them."""

    annotations: tuple[Line, ...] = ()
    """Patterns of the paths of tables, which are downloaded first; `*` also stands for `/`."""
    media: tuple[Line, ...] = ()
    """Patterns of the paths of clips and archives."""
    linked: tuple[LinkedFile, ...] = ()
    layout: Line
    adapter: Line | None = None
    """Function of `adapters.py` that writes the table `manifest.jsonl`; `None` if the files are a layout of unreel."""
    fetch_from: Line | None = None
    """Address of the clips if the table names them by URL, as a value of `UNREEL_FETCH_FROM`."""


class PublishedTableReference(RecipeSection):
    """Table of a paper with the results of models, stored in `unreel.benchmarks.published`."""

    table: Line
    model: Line
    """Column with the names of the models."""
    metrics: dict[Line, Line]
    """Column of each metric of unreel."""
    frames: Line | None = None
    """Frames that the models saw; `None` if that is not stated."""
    prompt: Line | None = None
    """Prompt variant of unreel with the words of the paper; `None` if there is none."""


class EvaluationDefaults(RecipeSection):
    """Settings of `unreel eval NAME` unless the user gives others."""

    protocol: Annotated[Line, AfterValidator(require_protocol)]
    prompt: Line = "paper"
    sampling: Line | None = None
    """Sampling plan; `None` is the default of the protocol."""
    split: Line | None = None
    published: PublishedTableReference | None = None


class CatalogueBenchmark(CatalogueEntry):
    """A public benchmark or data set."""

    download: HubDownload | None = None
    """`None` if unreel does not download the files."""
    evaluation: EvaluationDefaults | None = None
    by_hand: tuple[Line, ...] = ()
    """Steps of a download by hand."""
    splits: TextFact = None
    contents: TextFact = None
    """Numbers of clips, rows or pairs, by label where known."""
    files: LinesFact = None
    """Names and layout of the distributed files."""
    record: TextFact = None
    """Keys of one row of the annotations."""
    layout: TextFact = None
    """How unreel reads the files, as measured."""


PromptPart = Annotated[str, Field(min_length=1, max_length=200)]


class PromptReference(RecipeSection):
    """Place of a checkpoint's own prompt, a text of its owner that unreel does not contain.

    A part of the prompt is named by its place in the file: `*` is the whole file, `NAME` or
    `CLASS.NAME` a constant of a Python file or a key of a YAML file, and `CLASS.FUNCTION[N]` the
    N-th text, counted from 0, in a function.
    """

    repository: Annotated[str, Field(pattern=r"^https://github\.com/[\w.-]+/[\w.-]+$")]
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    path: Line
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """SHA-256 of the whole file at that commit."""
    system: PromptPart | None = None
    """Part that is the system message."""
    user: Annotated[tuple[PromptPart, ...], Field(min_length=1)]
    """Parts of the user's message, in order. `<video>` is the position of the clip, if it is not first; a line
    break is text as it is."""
    clip_mark: PromptPart | None = None
    """Text of the owner at the position of the clip."""
    caption_mark: PromptPart | None = None
    """Text that the prompt of the clip's generator replaces."""
    frame_time: Annotated[str, Field(pattern=r"^[^{}]*\{seconds:\.\df\}[^{}]*$")] | None = None
    """Format of the time before each frame."""


class ExampleAnswer(RecipeSection):
    """An answer in the form of a checkpoint, and what unreel's parser reads in each mode."""

    text: Annotated[str, Field(min_length=1, max_length=4096)]
    protocol: Annotated[Line, AfterValidator(require_protocol)]
    prompt: Line | None = None
    """Variant of the prompt for the parser; `None` is the default of the protocol."""
    read: dict[Mode, Line]
    """Verdict, or the reason why the answer cannot be read, by mode of the parser."""
    own: Line | None = None
    """Verdict of the parser for the checkpoint's own prompt."""


class CatalogueModel(CatalogueEntry):
    """A published checkpoint that reviews videos."""

    base: TextFact = None
    prompt: CatalogueFact[PromptReference] | None = None
    frames: TextFact = None
    frame_size: TextFact = None
    temperature: CatalogueFact[Annotated[float, Field(ge=0, allow_inf_nan=False)]] | None = None
    max_tokens: CatalogueFact[Annotated[int, Field(ge=1)]] | None = None
    max_length: CatalogueFact[Annotated[int, Field(ge=1)]] | None = None
    """Maximum number of tokens of a question with its answer."""
    answer: TextFact = None
    answer_format: tuple[CatalogueFact[AnswerFormat], ...] = ()
    """Forms of the answers to `prompt`, one for each protocol that can read them."""
    times: TextFact = None
    boxes: TextFact = None
    serve: LinesFact = None
    """Arguments of vLLM, after `vllm serve ID`, besides the maximum length."""
    sampling: CatalogueFact[Line] | None = None
    """Sampling plan of unreel with the frames of the owner."""
    max_pixels: CatalogueFact[Annotated[int, Field(ge=1)]] | None = None
    """Maximum number of pixels of a frame."""
    examples: tuple[CatalogueFact[ExampleAnswer], ...] = ()


def list_benchmarks() -> list[CatalogueBenchmark]:
    """Return all benchmarks of the catalogue, sorted by name."""
    return [
        _read_entry(CatalogueBenchmark, "benchmarks", name)
        for name in list_entry_names("benchmarks")
    ]


def list_models() -> list[CatalogueModel]:
    """Return all checkpoints of the catalogue, sorted by name."""
    return [get_model(name) for name in list_entry_names("models")]


def get_benchmark(name: str) -> CatalogueBenchmark:
    """Return the benchmark `name`; raise `UnknownNameError`, with all names, if unknown."""
    if name not in list_entry_names("benchmarks"):
        raise UnknownNameError("public benchmark", name, list_entry_names("benchmarks"))
    return _read_entry(CatalogueBenchmark, "benchmarks", name)


@cache
def get_model(name: str) -> CatalogueModel:
    """Return the checkpoint `name`; raise `UnknownNameError`, with all names, if unknown."""
    if name not in list_entry_names("models"):
        raise UnknownNameError("published checkpoint", name, list_entry_names("models"))
    return _read_entry(CatalogueModel, "models", name)


def list_model_names() -> list[str]:
    """Return the names of all checkpoints of the catalogue, sorted; no entry is read."""
    return list(list_entry_names("models"))


def find_named_checkpoint(model: str) -> CatalogueModel | None:
    """Return the checkpoint that `model`, NAME or NAME@URL, names; `None` if there is none on the hub.

    An entry with several ids on the hub, or with none, names no single model of a server.
    """
    name = model.partition("@")[0]
    entry = get_model(name) if name in list_entry_names("models") else None
    return entry if entry and entry.hub_ids and len(entry.hub_ids.value or ()) == 1 else None


Entry = TypeVar("Entry", bound=CatalogueEntry)


def _read_entry(shape: type[Entry], folder: str, name: str) -> Entry:
    text = (files("unreel.catalogue") / folder / f"{name}.toml").read_text(encoding="utf-8")
    return validate_recipe_sections(shape, {**tomllib.loads(text), "name": name})
