"""Creator that runs a local video pipeline of diffusers, from a folder or from the hub.

Families: Wan, HunyuanVideo, LTX and CogVideoX.
"""

import hashlib
import io
import json
import threading
from asyncio import to_thread
from decimal import Decimal
from fractions import Fraction
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NoReturn

from pydantic import Field, field_serializer, model_validator

from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError, raise_if_machine_error
from unreel.core.failure import Failure, FailureReason
from unreel.core.input_files import INDEX_FILES, require_safe_weight_index
from unreel.core.output_files import OutputDirectory
from unreel.core.registry import require_extra
from unreel.creators.contract import (
    ClipBrief,
    ClipClass,
    Creator,
    CreatorContext,
    CreatorInput,
    GeneratedClip,
)
from unreel.creators.kind import CreatorEnvironment, CreatorKeys
from unreel.creators.pipeline_families import (
    FAMILIES,
    FamilyName,
    PipelineFamily,
    fit_frame_count,
    fit_frame_size,
)
from unreel.recipes.validation import Exact, Text

if TYPE_CHECKING:  # functions import numpy when they need it
    import numpy as np
    from numpy.typing import NDArray

_INDEX: Final = "model_index.json"
_MODULES: Final = ("torch", "transformers", "diffusers", "ftfy")
_MOST_DETAIL: Final = 300
_CRF: Final = "14"
"""Quality of the written clips: visually lossless."""


class DiffusersCreatorConfig(CreatorKeys):
    """`kind = "diffusers"`: a local diffusers pipeline."""

    besides: ClassVar[frozenset[str]] = frozenset({"device", "offload", "model"})
    at_once: ClassVar[int] = 1

    family: FamilyName
    model: Text
    """Path of a folder written by `save_pretrained`, or name of a model on the hub with `revision`."""
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = None
    """Commit of a model on the hub. A branch is not accepted, because it can change."""
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    device: Annotated[str, Field(pattern=r"^(auto|cpu|cuda(:[0-9]{1,2})?|mps)$")] = "auto"
    offload: bool = False
    """Whether idle parts of the pipeline are moved to the main memory (CPU offload)."""
    steps: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Number of denoising steps; by default the pipeline's own."""
    guidance: Annotated[float, Field(ge=0, le=100)] | None = None
    negative: Text = ""
    """Negative prompt."""
    width: Annotated[int, Field(ge=16, le=4096)] | None = None
    """Width of the frames, with `height`; by default the aspect ratio of the real clip."""
    height: Annotated[int, Field(ge=16, le=4096)] | None = None
    n_frames: Annotated[int, Field(ge=1, le=2000)] | None = None
    """Number of frames; by default for the length of the real clip, up to the maximum of the family."""
    rate: Annotated[Exact, Field(ge=1, le=240)] | None = None
    """Frames per second; by default the rate of the family."""

    @model_validator(mode="after")
    def _frames_are_such_as_it_makes(self) -> "DiffusersCreatorConfig":
        family = FAMILIES[self.family]
        sides = (self.width, self.height)
        if None in sides and sides != (None, None):
            setting, problem = "width", "is named without height, or height without it"
            raise InvalidSettingError(setting, problem, "Name both or none")
        if any(length is not None and length % family.multiple for length in sides):
            setting, problem = "width, height", f"{self.family} makes no frames of that size"
            raise InvalidSettingError(setting, problem, f"Name multiples of {family.multiple}")
        if self.n_frames is not None and (self.n_frames - 1) % family.frames_multiple:
            setting, problem = "n_frames", f"{self.family} makes no clip of {self.n_frames} frames"
            remedy = f"Name a multiple of {family.frames_multiple}, and one more"
            raise InvalidSettingError(setting, problem, remedy)
        return self

    @field_serializer("rate")
    def _as_written(self, rate: Fraction | None) -> str | None:
        return None if rate is None else str(rate)

    def beside(self, base: Path) -> dict[str, str]:
        return {} if self.revision else {"model": str(base / Path(self.model).expanduser())}

    def label(self, title: str) -> str:  # noqa: ARG002  the model tells more than a title
        return self.model if self.revision else Path(self.model).name

    def identity(self) -> str:
        return digest(super().identity(), *self._weights())

    def open(self, name: str, env: CreatorEnvironment) -> Creator:  # noqa: ARG002  it needs nothing else
        self._require_family()
        require_extra(_MODULES, "diffusers")
        return DiffusersCreator(name, self)

    def call(self, brief: ClipBrief) -> dict[str, Any]:
        """Return the pipeline's call arguments for `brief`, except the image and the random generator."""
        family = FAMILIES[self.family]
        rate = self.rate or family.rate
        width, height = fit_frame_size(family, brief.width, brief.height)
        arguments = {
            "prompt": brief.text,
            "width": self.width or width,
            "height": self.height or height,
            "num_frames": self.n_frames or fit_frame_count(family, brief.duration_us, rate),
            "negative_prompt": self.negative or None,
            "num_inference_steps": self.steps,
            "guidance_scale": self.guidance,
            "frame_rate": float(rate) if family.told_rate else None,
        }
        return {word: value for word, value in arguments.items() if value is not None}

    def _require_family(self) -> None:
        """Raise if the folder of the model does not contain a pipeline of the configured family.

        Raises:
            InvalidSettingError: The folder has no index or another family's pipeline, or the model has
                a revision although it is a local folder.
        """
        if not self.revision and not (Path(self.model).expanduser() / _INDEX).is_file():
            self._refuse_folder()
        if not self.revision:
            for index in sorted(Path(self.model).expanduser().rglob(INDEX_FILES)):
                require_safe_weight_index(index)
        if self.revision and Path(self.model).exists():
            setting = "revision"
            problem = f"{self.model!a} is a folder here, and no name of the hub"
            raise InvalidSettingError(setting, problem, "Leave it out, or run it elsewhere")
        prefix = FAMILIES[self.family].from_text.removesuffix("Pipeline")
        kind = prefix if self.revision else _read_pipeline_class(Path(self.model).expanduser())
        if not kind.startswith(prefix):
            setting = "family"
            problem = f"{self.model!a} holds {kind[:60]!a}, none of {self.family}"
            raise InvalidSettingError(setting, problem, "Name the family of its pipeline")

    def _refuse_folder(self) -> NoReturn:
        setting, problem = "model", f"{self.model!a} holds no {_INDEX}"
        remedy = "Name a folder that save_pretrained wrote, or a name of the hub and its revision"
        raise InvalidSettingError(setting, problem, remedy)

    def _weights(self) -> list[str]:
        """Return texts that identify the checkpoint: model and revision, or names and hashes of its files."""
        if self.revision:
            return [self.model, self.revision]
        folder = Path(self.model).expanduser()
        if not (folder / _INDEX).is_file():
            if not folder.is_absolute():
                return [self.model]  # may be relative to the recipe; `open` checks it
            self._refuse_folder()
        files = sorted(
            file for file in folder.rglob("*") if file.suffix in {".json", ".safetensors"}
        )
        return [
            part
            for file in files
            for part in (str(file.relative_to(folder)), _compute_file_digest(file))
        ]


class DiffusersCreator:
    """Creator that runs one local pipeline, one clip at a time; weights are loaded at the first clip."""

    side: ClassVar[ClipClass] = ClipClass.GENERATED
    settings: ClassVar[frozenset[CreatorInput]] = frozenset(CreatorInput)

    def __init__(self, name: str, keys: DiffusersCreatorConfig) -> None:
        self.name = name
        self._keys = keys
        self._family = FAMILIES[keys.family]
        self._alone = threading.Lock()
        self._pipelines: dict[str, Any] = {}
        self._broken: Failure | None = None

    async def make(self, brief: ClipBrief, workplace: CreatorContext) -> GeneratedClip | Failure:
        """Make a clip from the text of the brief, from its first frame, or from both."""
        return await to_thread(self._make, brief, OutputDirectory(workplace.folder))

    async def close(self) -> None:
        """Release the weights of the loaded pipelines."""
        with self._alone:
            self._pipelines.clear()

    def _make(self, brief: ClipBrief, into: OutputDirectory) -> GeneratedClip | Failure:
        with self._alone:
            try:
                return self._run(brief, into)
            except Exception as error:  # noqa: BLE001  what a pipeline raises costs one clip
                raise_if_machine_error(error)
                reason = FailureReason.STAGE_FAILED
                if "out of memory" in str(error).lower():
                    reason = FailureReason.OUT_OF_MEMORY
                return Failure(reason, f"{type(error).__name__}: {error}"[:_MOST_DETAIL])

    def _run(self, brief: ClipBrief, into: OutputDirectory) -> GeneratedClip | Failure:
        from_image = brief.setting is not CreatorInput.TEXT
        picture = _decode_png(brief.first_frame) if from_image else None
        if from_image and picture is None:
            return Failure(FailureReason.NO_BRIEF, "a first frame that can be read is missing")
        pipeline = self._pipeline(self._family.from_image if from_image else self._family.from_text)
        if isinstance(pipeline, Failure):
            return pipeline
        call = self._keys.call(brief)
        frames = _generate_frames(pipeline, call, picture=picture, seed=brief.seed)
        if isinstance(frames, Failure):
            return frames
        rate = self._keys.rate or self._family.rate
        return GeneratedClip(
            file=into.write("clip.mp4", _encode_frames(frames, rate)),
            model=f"{self._keys.family} {self._keys.label('')}",
            parameters=self._told(call, type(pipeline).__name__, rate),
            cost_usd=Decimal(0),
        )

    def _pipeline(self, kind: str) -> Any:
        """Return the loaded pipeline of class `kind`, or the failure; after one failure all clips fail."""
        if self._broken is None and kind not in self._pipelines:
            try:
                self._pipelines[kind] = _load_pipeline(kind, self._keys, self._family)
            except Exception as error:  # noqa: BLE001  a checkpoint that is not of its family
                raise_if_machine_error(error)
                detail = f"{kind} of {self._keys.label('')!a} cannot be loaded ({error})"
                self._broken = Failure(FailureReason.STAGE_FAILED, detail[:_MOST_DETAIL])
        return self._broken or self._pipelines[kind]

    def _told(
        self, call: dict[str, Any], kind: str, rate: Fraction
    ) -> dict[str, str | int | float]:
        parameters = {word: value for word, value in call.items() if word != "prompt"}
        keys = self._keys
        released = import_module("diffusers").__version__
        setup = {"pipeline": kind, "dtype": keys.dtype, "rate": str(rate), "diffusers": released}
        return parameters | setup | ({"revision": keys.revision} if keys.revision else {})


def _load_pipeline(kind: str, keys: DiffusersCreatorConfig, family: PipelineFamily) -> Any:
    import torch
    from transformers.utils import logging

    released = import_module("diffusers")
    released.utils.logging.disable_progress_bar()
    logging.disable_progress_bar()
    dtype = getattr(torch, keys.dtype)
    parts = {"default": dtype, "vae": torch.float32} if family.fine_decoder else dtype
    pipeline = getattr(released, kind).from_pretrained(
        keys.model if keys.revision else str(Path(keys.model).expanduser()),
        revision=keys.revision,
        dtype=parts,
        use_safetensors=True,
        local_files_only=keys.revision is None,
        trust_remote_code=False,
    )
    pipeline.set_progress_bar_config(disable=True)
    device = (
        ("cuda" if torch.cuda.is_available() else "cpu") if keys.device == "auto" else keys.device
    )
    if keys.offload:
        pipeline.enable_model_cpu_offload(device=device)
        return pipeline
    return pipeline.to(device)


def _generate_frames(
    pipeline: Any, call: dict[str, Any], *, picture: Any, seed: int
) -> "NDArray[np.uint8] | Failure":
    import numpy as np
    import torch

    image = {} if picture is None else {"image": picture.resize((call["width"], call["height"]))}
    noise = torch.Generator("cpu").manual_seed(seed)  # the same noise on every device
    with torch.inference_mode():
        output = pipeline(**call, **image, generator=noise, output_type="np").frames[0]
    frames = np.asarray(output, np.float32)
    if not np.isfinite(frames).all():
        return Failure(FailureReason.STAGE_FAILED, "the pipeline gave pixels that are no numbers")
    return np.rint(np.clip(frames, 0, 1) * 255).astype(np.uint8)


def _encode_frames(frames: "NDArray[np.uint8]", rate: Fraction) -> bytes:
    from unreel.media.encode import ClipWriter, VideoTrackSettings

    _, height, width, _ = frames.shape
    track = VideoTrackSettings(
        codec="libx264",
        width=width,
        height=height,
        rate=rate,
        time_base=1 / rate,
        options={"crf": _CRF, "preset": "veryfast", "bf": "0", "g": "48"},
    )
    with ClipWriter("mp4", track) as writer:
        for tick, frame in enumerate(frames):
            writer.add_picture(frame, tick=tick)
        return writer.finish()


def _decode_png(png: bytes | None) -> Any:
    from PIL import Image

    if png is None:
        return None
    try:
        return Image.open(io.BytesIO(png), formats=("PNG",)).convert("RGB")
    except (OSError, ValueError, Image.DecompressionBombError):
        return None


def _read_pipeline_class(folder: Path) -> str:
    try:
        return str(json.loads((folder / _INDEX).read_text(encoding="utf-8"))["_class_name"])
    except (OSError, ValueError, LookupError, TypeError):
        return "nothing that can be read"


def _compute_file_digest(file: Path) -> str:
    status = file.stat()
    return _hash_file_bytes(file, status.st_size, status.st_mtime_ns)


@cache
def _hash_file_bytes(file: Path, _size: int, _changed_ns: int) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
