"""Export of training examples to a folder for another trainer: rows, media, settings and differences."""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Literal

from unreel.benchmarks.entry import REASONS_SHOWN, Rejected
from unreel.core.errors import InvalidSettingError, InvalidValueError, UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.core.input_files import RECIPE_BYTES, parse_json_object, read_limited_bytes
from unreel.core.output_files import OutputDirectory
from unreel.media.sampling import LlamaFactorySampling, PerSecondSampling, parse_sampling
from unreel.protocols.presentation import LONGEST_SIDE, MIN_PIXELS, shows_frame_times
from unreel.reviewers.clip_inputs import ClipInputLoader
from unreel.reviewers.contract import ClipInput, ShownFrame, WholeClip
from unreel.reviewers.endpoint.model_families import (
    FrameResizeRule,
    format_box_space,
    get_model_family,
)
from unreel.reviewers.local.checkpoint import write_checkpoint_input_spec
from unreel.reviewers.message_parts import build_message_parts
from unreel.training.examples.example import (
    TrainingExample,
    TrainingExampleInput,
    build_training_example_input,
    load_training_example_input,
)
from unreel.training.examples.input_size import SIGHT
from unreel.training.recipe import TrainRecipe

TRAIN = "train"
HELD_OUT = "held_out"
Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows of each part, `train` and `held_out`."""

_REMEDY = 'Set input="frames", which every trainer uses unchanged'


class ChatFormat:
    """Chat rows as JSON Lines for any trainer: messages, and the paths of images after their timestamps."""

    name = "chat"
    written_for: str | None = None
    """Version of the trainer that the format was written for."""
    command: str | None = None
    """Command that starts the trainer, to be run in the export folder."""
    file_sampling: LlamaFactorySampling | None = None
    """Rate and number of the frames that the trainer samples from a clip's file; `None` for images."""

    def __init__(self, recipe: TrainRecipe) -> None:
        self.recipe = recipe
        if recipe.input == "video":
            self.file_sampling = self._get_file_sampling()
        # A trainer has one condition for all data: that of the largest frames.
        self.condition = max(
            {data.resolved_condition for data in recipe.data},
            key=lambda each: (each.max_pixels or LONGEST_SIDE**2, str(each)),
        )
        self.max_pixels = self.condition.max_pixels or LONGEST_SIDE**2
        """Maximum number of pixels of a frame, for trainers that do not limit its longest side."""
        folder = Path(recipe.model.name)
        self.model_folder = folder.resolve() if folder.is_dir() else None

    def _get_file_sampling(self) -> LlamaFactorySampling:
        raise InvalidSettingError(
            "input", "chat rows have no rule for the frames of a video", _REMEDY
        )

    def seen(self, width: int, height: int) -> tuple[int, int]:
        """Return the size at which the model sees a frame that the trainer receives at the given size."""
        rule = SIGHT[self.recipe.model.family, "frames"]
        unit = rule.patch * rule.merge
        # Number of tokens of an image or frame in the published processors.
        low, high = 4 * unit**2, 16384 * unit**2
        half = "image" if self.recipe.input == "frames" else "video"
        first = ["video_preprocessor_config.json"] if half == "video" else []
        for name in (*first, "preprocessor_config.json", "processor_config.json"):
            file = None if self.model_folder is None else self.model_folder / name
            if file is None or not file.is_file():
                continue
            try:
                settings = parse_json_object(read_limited_bytes(file, most=RECIPE_BYTES))
            except InvalidValueError:
                continue
            inner = settings.get(f"{half}_processor")
            settings = inner if isinstance(inner, Mapping) else settings
            size = settings.get("size")
            size = size if isinstance(size, Mapping) else {}
            lowest = size.get("shortest_edge", settings.get("min_pixels"))
            highest = size.get("longest_edge", settings.get("max_pixels"))
            if isinstance(lowest, int) and isinstance(highest, int) and 0 < lowest <= highest:
                low, high = lowest, highest
                break
        return FrameResizeRule(multiple=unit, min_pixels=low, max_pixels=high).size(width, height)

    def box_space(self, clip_input: ClipInput) -> str:
        """Return the coordinate space of the boxes after the trainer's resize of `clip_input`."""
        boxes, size = get_model_family(self.recipe.model.family).boxes, clip_input.shown_size
        return format_box_space(boxes, shown=size, seen=self.seen(*size))

    def sampling(self) -> str:
        """Return the sampling plan of unreel that equals the trainer's sampling of frames."""
        return str(self.file_sampling or self.condition.sampling)

    def differences(self) -> list[str]:
        """Return the differences from a training by unreel that cannot be avoided, with advice."""
        data = self.recipe.data
        differences = []
        if any(
            "<video> " in each.instrument.prompt(each.resolved_condition.prompt).text
            for each in data
        ):
            differences.append(
                "the prompt's own mark `<video> ` gives way to the clip's place: a trainer would look for "
                "a second clip. Here it stays a word of the question"
            )
        if len({each.weight for each in data}) > 1:
            differences.append(
                "rows have the order and number of the first epoch; later epochs repeat it, while a "
                "training here samples again by weight"
            )
        return differences

    def files(self, rows: Rows) -> dict[str, str]:
        """Return file texts by name: rows of each part, and settings of the trainer."""
        return {
            f"{part}.jsonl": "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in items)
            for part, items in rows.items()
        }


class LlamaFactoryFormat(ChatFormat):
    """LLaMA-Factory's `dataset_info.json`, rows in its sharegpt format, and a YAML configuration."""

    name = "llamafactory"
    written_for = "LLaMA-Factory 0.9.5"
    command = "llamafactory-cli train train.yaml"
    _TEMPLATES: ClassVar = {"qwen2.5-vl": "qwen2_vl", "qwen3-vl": "qwen3_vl_nothink"}

    def __init__(self, recipe: TrainRecipe) -> None:
        family = recipe.model.family
        if family not in self._TEMPLATES:
            raise InvalidSettingError(
                "model.family",
                f"{self.name} trains no {family}",
                f"It trains: {', '.join(self._TEMPLATES)}",
            )
        super().__init__(recipe)

    def _get_file_sampling(self) -> LlamaFactorySampling:
        if (
            len(
                {
                    (data.resolved_condition.sampling, data.resolved_condition.max_pixels)
                    for data in self.recipe.data
                }
            )
            > 1
        ):
            raise InvalidSettingError(
                "data.condition",
                "a trainer has one sampling and one size for all data",
                f"Make them alike, or: {_REMEDY}",
            )
        sampling = self.recipe.data[0].resolved_condition.sampling
        match parse_sampling(sampling):
            case PerSecondSampling(fps, at_most):
                # Without a maximum in the recipe, that of Qwen's own tools.
                return LlamaFactorySampling(fps, at_most or 768)
            case LlamaFactorySampling() as same:
                return same
            case _:
                raise InvalidSettingError(
                    "data.condition.sampling",
                    f"no other trainer takes {sampling}",
                    f"Name a rate, for example fps-2-max-180. Or: {_REMEDY}",
                )

    def seen(self, width: int, height: int) -> tuple[int, int]:
        """Return the size after LLaMA-Factory's own resize, then the processor's."""
        # Its area is limited and rounded down first, and each side has 28 pixels or more.
        area = width * height
        allowed = min(max(area, MIN_PIXELS), self.max_pixels)
        if allowed != area:
            scale = math.sqrt(allowed / area)
            width, height = int(width * scale), int(height * scale)
        return super().seen(max(width, 28), max(height, 28))

    def differences(self) -> list[str]:
        """Return the differences from a training by unreel that cannot be avoided, with advice."""
        differences = super().differences()
        if self.file_sampling is None:
            return differences
        if (used := self.sampling()) != (requested := self.condition.sampling):
            differences.append(
                f"frames there are those of {used}, not of {requested}. Set "
                f"data.condition.sampling={used}, and clips are asked with the same frames"
            )
        differences.append(
            "a clip with a longer side than 1024 comes there in its own size, bounded by its area "
            f"alone ({self.max_pixels:,} pixels); here it is shown at 1024. Set "
            "data.condition.max_pixels to make both alike"
        )
        if self.recipe.model.family == "qwen2.5-vl":
            if any(
                shows_frame_times(d.protocol, d.resolved_condition.marks) for d in self.recipe.data
            ):
                differences.append(
                    f"{self.name} dates n frames of a clip as if they lay length/n apart, but takes "
                    "them length/(n - 1) apart, from the first to the last"
                )
            differences.append(
                f"transformers 5.6, which {self.name} pins, ignores the length of a video in the positions of the "
                "text after it; a server that counts it (vLLM) disagrees. Here that is fixed"
            )
        return differences

    def files(self, rows: Rows) -> dict[str, str]:
        """Return file texts by name: rows of each part, their description, and the configuration."""
        medium = "images" if self.recipe.input == "frames" else "videos"
        tags = {f"{name}_tag": name for name in ("role", "content", "user", "assistant")}
        info = {
            f"unreel_{part}": {
                "file_name": f"{part}.json",
                "formatting": "sharegpt",
                "columns": {"messages": "messages", medium: medium},
                "tags": tags,
            }
            for part in rows
        }
        documents = {f"{part}.json": items for part, items in rows.items()}
        texts = {
            name: json.dumps(document, indent=2, ensure_ascii=False) + "\n"
            for name, document in {**documents, "dataset_info.json": info}.items()
        }
        lines = []
        for key, value in self._build_settings(has_held_out=HELD_OUT in rows).items():
            text = json.dumps(value, ensure_ascii=False)
            if isinstance(value, float) and "e" in text and "." not in text:
                text = text.replace("e", ".0e")  # YAML 1.1 parses 1e-05 as a string
            lines.append(f"{key}: {text}\n")
        return texts | {"train.yaml": "".join(lines)}

    def _build_settings(self, *, has_held_out: bool) -> dict[str, Any]:
        recipe, model, optimise = self.recipe, self.recipe.model, self.recipe.optimise
        sampling = self.file_sampling
        settings: dict[str, Any] = {
            "model_name_or_path": str(self.model_folder or model.name),
            "trust_remote_code": False,
            "stage": "sft",
            "do_train": True,
            "finetuning_type": model.tune,
            "freeze_vision_tower": model.vision == "frozen",
            "freeze_multi_modal_projector": model.vision == "frozen",
            "disable_gradient_checkpointing": not model.gradient_checkpointing,
            "template": self._TEMPLATES[model.family],
            "dataset": f"unreel_{TRAIN}",
            "dataset_dir": ".",
            "media_dir": ".",
            "cutoff_len": 1 << 18,  # the context of these models: no text is truncated
            "image_max_pixels": self.max_pixels,
            "image_min_pixels": MIN_PIXELS,
            "video_max_pixels": self.max_pixels,
            "video_min_pixels": MIN_PIXELS,
            "video_fps": float(sampling.fps) if sampling else 2.0,
            "video_maxlen": sampling.at_most if sampling else 128,
            "preprocessing_num_workers": 1,
            "per_device_train_batch_size": optimise.batch_size,
            "gradient_accumulation_steps": optimise.accumulate,
            "learning_rate": optimise.learning_rate,
            "lr_scheduler_type": optimise.schedule.replace("constant", "constant_with_warmup"),
            "warmup_ratio": optimise.warmup,
            "weight_decay": optimise.weight_decay,
            "adam_beta1": optimise.betas[0],
            "adam_beta2": optimise.betas[1],
            "max_grad_norm": optimise.max_grad_norm,
            "num_train_epochs": optimise.epochs,
            "bf16": model.precision == "bf16",
            "seed": recipe.seed % 2**31,
            "logging_steps": 1,
            "save_steps": recipe.watch.save_every,
            "save_total_limit": recipe.watch.keep,
            "dataloader_num_workers": optimise.workers,
            "report_to": "none",
            "output_dir": "checkpoints",
        }
        if optimise.max_steps is not None:
            settings["max_steps"] = optimise.max_steps
        if model.tune == "lora":
            settings |= {
                "lora_rank": model.lora_rank,
                "lora_alpha": model.lora_alpha,
                "lora_dropout": model.lora_dropout,
                "lora_target": "all",
            }
        if has_held_out:
            settings |= {
                "eval_dataset": f"unreel_{HELD_OUT}",
                "eval_strategy": "steps",
                "eval_steps": recipe.watch.every,
                "per_device_eval_batch_size": 1,
            }
        return settings


FORMATS: Mapping[str, type[ChatFormat]] = {
    form.name: form for form in (ChatFormat, LlamaFactoryFormat)
}


MANIFEST = "unreel-export.json"
ROWS = "rows.jsonl"
_MEDIA = "media"
_SUFFIXES = {".mp4", ".mov", ".mkv", ".webm", ".avi", ".gif", ".m4v"}
_NO_BYTES = WholeClip(b"", "application/octet-stream")
"""Placeholder for the content of a clip file, which is linked or copied without being read."""
_TAG_IN_PROMPT = re.compile(r"<(?:image|video|audio)> ?")
_TAG_IN_ANSWER = re.compile(r"<(?:image|video|audio)>|<\|")
"""Pattern of text that answers must not contain: media tags, and the start of chat template tags (`<|`)."""

Keeping = Literal["link", "copy"]
"""Whether a clip's own file is linked or copied; it is never re-encoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleExportResult:
    """Result of an export to another trainer, with the examples that could not be written."""

    folder: Path
    trainer: str
    n_train: int
    n_held_out: int
    sampling: str
    differences: tuple[str, ...]
    left_out: Mapping[str, int]
    """Number of rows that could not be written, by reason."""
    first: tuple[Rejected, ...]
    command: str | None


def export_training_examples(
    form: ChatFormat,
    parts: Mapping[str, Sequence[TrainingExample]],
    *,
    folder: Path,
    loader: ClipInputLoader,
    keeping: Keeping = "link",
) -> ExampleExportResult:
    """Write the examples of `parts`, `train` and `held_out`, to the new `folder` for another trainer.

    Raise `UnreadableSourceError` if no example could be written.
    """
    into = OutputDirectory(folder, published=True)
    written: set[str] = set()
    rows: dict[str, list[Mapping[str, Any]]] = {TRAIN: [], HELD_OUT: []}
    reasons: Counter[str] = Counter()
    first: list[Rejected] = []
    with into.create_text(ROWS) as log:
        for part, examples in parts.items():
            for example in examples:
                if form.recipe.input == "frames":
                    loaded = load_training_example_input(example, loader, form)
                else:
                    whole = tuple(ClipInput(clip=clip, whole=_NO_BYTES) for clip in example.clips)
                    loaded = build_training_example_input(example, whole, form)
                row: dict[str, Any] | Failure = (
                    loaded
                    if isinstance(loaded, Failure)
                    else _build_row(loaded, form, loader, into, written, keeping)
                )
                if isinstance(loaded, Failure) or isinstance(row, Failure):
                    reasons[str(row).partition(". ")[0]] += 1
                    if len(first) < REASONS_SHOWN:
                        first.append(Rejected(example.name, str(row)))
                    continue
                rows[part].append(row)
                # All that is needed to parse an answer to the row.
                record: dict[str, Any] = {
                    "part": part,
                    "key": example.key,
                    "name": example.name,
                    "clips": list(example.question.shown),
                    "box_space": loaded.box_space,
                    "prompt": example.question.condition.prompt,
                    "answer": loaded.target,
                }
                inputs = loaded.request.inputs
                if times := [frame.at_s for each in inputs for frame in each.frames]:
                    record["instants_s"] = [round(float(at_s), 6) for at_s in times]
                log.write(json.dumps(record, ensure_ascii=False) + "\n")
    if not rows[TRAIN]:
        problem = f"no example could be written for {form.name}"
        remedy = f"The first is {first[0]}" if first else "Check the data"
        raise UnreadableSourceError(str(folder), problem, remedy)
    rows = {part: items for part, items in rows.items() if items}
    for name, text in form.files(rows).items():
        into.write(name, text.encode())
    # Copied to the trained checkpoint, it lets `local/PATH` use the same input format.
    write_checkpoint_input_spec(form.recipe.input_spec, folder)
    exported = ExampleExportResult(
        folder=folder,
        trainer=form.name,
        n_train=len(rows[TRAIN]),
        n_held_out=len(rows.get(HELD_OUT, ())),
        sampling=form.sampling(),
        differences=tuple(form.differences()),
        left_out=dict(reasons),
        first=tuple(first),
        command=form.command,
    )
    manifest = {
        "unreel": version("unreel"),
        "trainer": form.name,
        "written_for": form.written_for,
        "command": form.command,
        "recipe": form.recipe.model_dump(mode="json"),
        "input": form.recipe.input,
        "boxes": get_model_family(form.recipe.model.family).boxes,
        "sampling_asked": form.condition.sampling,
        "sampling_used": exported.sampling,
        "most_pixels": form.max_pixels,
        "n_train": exported.n_train,
        "n_held_out": exported.n_held_out,
        "left_out": exported.left_out,
        "differences": exported.differences,
    }
    into.write(MANIFEST, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())
    return exported


def _build_row(
    example: TrainingExampleInput,
    form: ChatFormat,
    loader: ClipInputLoader,
    output: OutputDirectory,
    written: set[str],
    keeping: Keeping,
) -> dict[str, Any] | Failure:
    """Write the media of an example that are not in `written`, and build its row.

    Media tags in the prompt text are removed: otherwise a trainer would expect a second clip.
    """
    if match := _TAG_IN_ANSWER.search(example.target):
        reason = f"not taught: the answer contains {match[0]!r}, a special tag of the trainer"
        return Failure(FailureReason.REQUEST_REJECTED, reason)
    is_frames = form.recipe.input == "frames"
    parts = build_message_parts(
        example.request, form="frames" if is_frames else "clip", times="seconds"
    )
    if isinstance(parts, Failure):
        return parts
    owners = {id(frame): each.clip for each in example.request.inputs for frame in each.frames}
    clips = iter(example.example.clips)
    prompt, paths = "", []
    for part in parts:
        match part:
            case str():
                prompt += _TAG_IN_PROMPT.sub("", part)
                continue
            case ShownFrame() as frame:
                prompt += "<image>"
                folder = f"{_MEDIA}/{owners[id(frame)].id[:16]}-{frame.width}x{frame.height}"
                name = f"{folder}/{frame.index:06d}.jpg"
                if name not in written:
                    output.write(name, frame.jpeg)
            case WholeClip():
                prompt += "<video>"
                clip = next(clips)
                suffix = PurePosixPath(clip.location).suffix.lower()
                name = f"{_MEDIA}/{clip.id[:16]}{suffix if suffix in _SUFFIXES else '.mp4'}"
                if name not in written:
                    with loader.open_file(clip.location) as file:
                        if keeping == "link" and "://" not in clip.location:
                            output.link(file.resolve(), name)
                        else:
                            output.copy(file, name)
            case _:
                reason = "not taught: these trainers are given no sound"
                return Failure(FailureReason.REQUEST_REJECTED, reason)
        written.add(name)
        paths.append(name)
    turns = [{"role": "user", "content": prompt}, {"role": "assistant", "content": example.target}]
    return {"messages": turns, "images" if is_frames else "videos": paths}
