"""Model card of a checkpoint: training data, accuracy and limits."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.input_files import parse_json_object, read_limited_bytes
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_line
from unreel.training.recipe import TrainRecipe

PAGE = "README.md"
FILE = "card.json"
_MAX_BYTES = 4 << 20
_PACKAGES = ("unreel", "torch", "transformers", "peft", "trl", "accelerate")
_NOT_STATED = "not stated"
LIMITS = (
    "As proof that a video is or is not AI-generated. The model gives a judgement with a known rate of error.",
    "As the only ground for a measure against a person, an account or a publication.",
    "On kinds of clips, generators or lengths on which it was not evaluated.",
    "With prompts or frames of another form than in training (see unreel.json): `unreel` refuses that.",
    "As the only reviewer of a generator that is trained against it: the generator will fool it before it fools people.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointModelCard:
    """Content of the model card of a checkpoint."""

    name: str
    step: int
    recipe: Mapping[str, Any]
    data: Mapping[str, Any]
    """Digest and counts of the training data and the holdout."""
    base: Mapping[str, Any]
    """Base model: name, digest and licence."""
    licences: Sequence[str]
    """Licences of the clips as declared by their benchmarks; includes "" if some declare none."""
    look: Mapping[str, Any] | None
    """Last validation result, with intervals; `None` if nothing was held out."""
    unshown: Mapping[str, Sequence[str]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    not_for: tuple[str, ...] = LIMITS


def read_package_versions() -> dict[str, str]:
    """Return the versions of the installed packages that affect the result of a training."""
    versions: dict[str, str] = {}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def read_model_licence(folder: Path) -> str:
    """Return the licence in the front matter of a model's README; "" if missing."""
    try:
        text = read_limited_bytes(folder / PAGE, most=_MAX_BYTES).decode(errors="replace")
    except UnreadableSourceError:
        return ""
    head = text.split("---", 2)[1] if text.startswith("---") and text.count("---") > 1 else ""
    for line in head.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "license":
            return value.strip().strip("\"'")
    return ""


def write_model_card(card: CheckpointModelCard, directory: OutputDirectory) -> None:
    """Write the model card into the checkpoint's folder, as Markdown and as JSON."""
    document = json.dumps(to_jsonable_python(card), indent=1)
    directory.write(FILE, document.encode())
    directory.write(PAGE, format_model_card(card).encode())


def read_model_card(folder: Path) -> CheckpointModelCard:
    """Read the checkpoint's model card; raise `UnreadableSourceError` if missing or damaged."""
    remedy = "Name a checkpoint that unreel trained: OUT/model, or one below OUT/checkpoints"
    data = read_limited_bytes(folder / FILE, most=_MAX_BYTES, remedy=remedy)
    try:
        return CheckpointModelCard(**parse_json_object(data))
    except (InvalidValueError, TypeError) as error:
        raise UnreadableSourceError(str(folder / FILE), "no model card", remedy) from error


def format_model_card(card: CheckpointModelCard) -> str:
    """Format the model card as a Markdown page."""
    recipe = TrainRecipe.model_validate(card.recipe)
    rows = [
        ("base", f"{_escape_table_cell(card.base['name'])} (weights {card.base['digest'][:16]})"),
        ("licence of the base model", _escape_table_cell(card.base["licence"]) or _NOT_STATED),
        ("tuned", f"{recipe.model.tune}, vision {recipe.model.vision}"),
        ("shown as", recipe.input),
        *(
            (f"queried with `{data.protocol}`", _escape_table_cell(str(data.resolved_condition)))
            for data in recipe.data
        ),
    ]
    licences = ", ".join(
        _escape_table_cell(name) or f"{_NOT_STATED} for some" for name in card.licences
    )
    lines = [
        "## Training data\n",
        f"- {card.data['n_train']:,} examples; {card.data['n_held_out']:,} were held out",
        f"- digest of all examples and their answers: `{card.data['digest']}`",
        *(f"- {_escape_table_cell(each)}" for each in card.data["benchmarks"]),
        f"- licences of the clips, as declared: {licences or _NOT_STATED}",
        *(
            f"- {_escape_table_cell(reason)}: {n:,} excluded"
            for reason, n in card.data["left_out"].items()
        ),
    ]
    if leaks := card.data["leaks"]:
        lines.append(
            f"- **{len(leaks):,} test clips are also in the training data**, such as {_escape_table_cell(leaks[0])}"
        )
    if card.unshown:
        lines.append(f"- {len(card.unshown):,} examples could not be shown and were not trained on")
    parts = [
        "---",
        "license: other",
        f"base_model: {json.dumps(card.base['name'])}",
        *(["library_name: peft"] if recipe.model.tune == "lora" else []),
        "pipeline_tag: video-text-to-text",
        "tags: [unreel, ai-generated-video-detection]",
        "---\n",
        f"# {_escape_table_cell(card.name)}\n",
        f"A reviewer of videos, trained by `unreel train run` for {card.step:,} steps.\n",
        *["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows), ""],
        *[*lines, ""],
        *_format_score_section(card),
        "## Out-of-scope use\n",
        *(f"- {use}" for use in card.not_for),
        "\n## Recipe\n",
        "```json",
        json.dumps(card.recipe, indent=1),
        "```\n",
        "## Software\n",
        *(f"- {name} {number}" for name, number in card.versions.items()),
    ]
    return "\n".join(parts) + "\n"


def _format_score_section(card: CheckpointModelCard) -> list[str]:
    lines = ["## Evaluation\n"]
    if card.look is None:
        return [*lines, "Not measured: nothing was held out.\n"]
    step, loss = card.look["step"], card.look["loss"]
    lines.append(f"Held-out clips, evaluated at step {step:,}; held-out loss {loss:.4f}.\n")
    for scores in card.look["cards"]:
        name = scores["instrument"]["protocol"]
        coverage = f"{scores['n_answered']} of {scores['n_questions']} questions answered"
        lines += [
            f"`{name}`: {coverage}\n",
            "| figure | value | 95 % interval | n |",
            "|---|---|---|---|",
        ]
        for metric in scores["metrics"]:
            value = metric["value"]
            cells = (
                f"not measured: {_escape_table_cell(value['why'])} | | " if "why" in value else ""
            )
            if not cells:
                interval = f"{value['low']:.3f} to {value['high']:.3f}"
                cells = f"{value['value']:.3f} | {interval} | {value['n']}"
            lines.append(f"| {_escape_table_cell(metric['name'])} | {cells} |")
        lines.append("")
    return lines


def _escape_table_cell(text: str) -> str:
    """Return foreign text that is safe in a table cell: one line, no `|` and no markup."""
    safe = sanitise_line(text).replace("|", "/").replace("<", "&lt;").replace("`", "'")
    return " ".join(safe.split())
