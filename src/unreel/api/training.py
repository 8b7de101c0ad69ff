"""Training: a model from a recipe, its examples, its export and its card."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

from unreel.api.shared_settings import LayoutSettings, TableSettings, TrustSettings
from unreel.core.command_options import FOLDER, Option
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.output_files import OutputDirectory
from unreel.core.registry import needs_extra
from unreel.core.safe_names import make_safe_file_name
from unreel.core.settings import read_environment_settings
from unreel.engine.progress import OnStep, Progress

if TYPE_CHECKING:
    from unreel.engine.storage_access import ClipAccessSettings
    from unreel.media.reader import MediaReader
    from unreel.reviewers.clip_inputs import ClipInputLoader
    from unreel.training.accelerate_config import AccelerateLaunchCommands
    from unreel.training.examples.page import TrainingExamplePageItem
    from unreel.training.examples.reading import SkippedExampleCounts
    from unreel.training.export import ExampleExportResult
    from unreel.training.manifest import Going, TrainingResult
    from unreel.training.model_card import CheckpointModelCard
    from unreel.training.recipe import TrainRecipe
    from unreel.training.run import TrainingCallbacks, TrainingProcessInfo
    from unreel.training.sft.validation import EarlyStoppingState

STEPS = "steps"
"""Name of the part of a training that takes steps."""


@dataclass(frozen=True, kw_only=True)
class DataSettings(TrustSettings, TableSettings):
    """Settings of a command that reads the data of a training recipe."""

    recipe: Annotated[str, Option(is_argument=True)]
    data: Annotated[tuple[str, ...], Option(kind="existing text", metavar="PATH")] = ()
    """Benchmark that replaces the one in a [[data]] section of the recipe. Repeatable: the first is for the first section, and so on."""
    changes: Annotated[tuple[str, ...], Option(name="--set", metavar="SECTION.KEY=VALUE")] = ()
    """Value that replaces a setting of the recipe, for example optimise.epochs=2. Repeatable."""
    accept_leak: bool = False
    """Continue even if the training data contains clips of the evaluation set."""

    def build_access(self) -> "ClipAccessSettings":
        """Return how clips are opened; raise if the sandbox does not work here."""
        with needs_extra("eval"):
            from unreel.engine.storage_access import build_clip_access_settings
            from unreel.media.access import require_sandbox_protection

        environment = read_environment_settings()
        require_sandbox_protection(environment, trusted=self.trusted)
        return build_clip_access_settings(
            environment, trusted=self.trusted, outside=self.allow_outside
        )


@dataclass(frozen=True, kw_only=True)
class TrainSettings(DataSettings):
    """Settings of `train_recipe`."""

    out: Annotated[Path | None, FOLDER] = None
    """Folder for the model and the checkpoints.  [default: trainings/NAME]"""


def train(
    recipe: str | Path | Mapping[str, Any],
    *,
    data: Sequence[str | Path] = (),
    changes: Sequence[str] = (),
    out: str | Path | None = None,
    resume: bool = False,
    fresh: bool = False,
    accept_leak: bool = False,
    allow_outside: bool = False,
    trusted: bool = False,
    on_progress: OnStep | None = None,
) -> "TrainingResult":
    """Train the model of `recipe` in this process, and write it to `out`/model.

    A second call resumes at the last checkpoint.

    Args:
        recipe: A TOML file, the name of a recipe of unreel, or its sections as a mapping.
        data: Benchmarks for the recipe's `[[data]]`, in their order.
        changes: Overrides of single settings, for example `["optimise.epochs=2"]`.
        out: Folder of the training; `trainings/NAME` by default.
        resume: Raise if there is no training to resume.
        fresh: Start again, and delete the existing checkpoints.
        accept_leak: Train although the data contains clips of the evaluation set.
        allow_outside: Let a table name files outside its folder; only for your own tables.
        trusted: Open clips in this process; by default a confined child does.
        on_progress: Callback with `steps`, or another part, and its progress.

    Raises:
        InvalidSettingError: The recipe has an unsupported setting, or needs more processes.
        MissingExtraError: A required package is not installed.
        UnknownNameError: No recipe has that name.
        UnreadableSourceError: The data cannot be read, or `out` contains another training.
    """
    if resume and fresh:
        raise InvalidSettingError(
            "fresh", "a training either resumes or starts again", "Leave out resume or fresh"
        )
    with needs_extra("train"):
        from unreel.training.run import TrainingCallbacks, read_training_process_info

    settings = TrainSettings(
        recipe="",
        data=tuple(map(str, data)),
        changes=tuple(changes),
        out=None if out is None else Path(out),
        accept_leak=accept_leak,
        allow_outside=allow_outside,
        trusted=trusted,
    )
    checked, folder = prepare_training(settings, recipe)
    n_named, n_here = checked.devices.count * checked.devices.nodes, read_training_process_info().n
    if n_named != n_here:
        raise InvalidSettingError(
            "devices",
            f"the recipe names {n_named} processes and {n_here} run",
            "Use `unreel train run`, or start your program with `accelerate launch`",
        )
    start = 0
    n_due = 0

    def begin(first: int, n_steps: int) -> None:
        nonlocal start, n_due
        start, n_due = first, n_steps - first

    def step(number: int, loss: float, state: "EarlyStoppingState") -> None:
        if on_progress is not None:
            note = describe_training_step(loss, state)
            on_progress(STEPS, Progress(done=number - start, due=n_due, note=note))

    callbacks = TrainingCallbacks()
    if on_progress is not None:
        callbacks = TrainingCallbacks(on_reading=on_progress, on_start=begin, on_step=step)
    going: Going = "fresh" if fresh else "resume" if resume else "either"
    return train_recipe(settings, checked, folder, callbacks, going=going)


def prepare_training(
    settings: TrainSettings, recipe: str | Path | Mapping[str, Any] | None = None
) -> "tuple[TrainRecipe, Path]":
    """Check the recipe; return it with the folder of the training. `recipe` replaces that of the settings.

    Raises:
        SandboxError: Untrusted files cannot be opened safely here.
    """
    with needs_extra("train"):
        from unreel.media.access import require_sandbox_protection
        from unreel.training.recipe import read_train_recipe

    named = settings.recipe if recipe is None else recipe
    checked = read_train_recipe(named, data=settings.data, changes=settings.changes)
    require_sandbox_protection(read_environment_settings(), trusted=settings.trusted)
    return checked, settings.out or Path("trainings") / make_safe_file_name(checked.name)


def train_recipe(
    settings: TrainSettings,
    recipe: "TrainRecipe",
    folder: Path,
    callbacks: "TrainingCallbacks",
    *,
    going: "Going",
) -> "TrainingResult":
    """Train the model of a recipe that was already checked."""
    from unreel.training.run import train

    return train(
        recipe,
        folder,
        access=settings.build_access(),
        going=going,
        accept_leak=settings.accept_leak,
        callbacks=callbacks,
    )


def describe_training_step(loss: float, state: "EarlyStoppingState") -> str:
    """Return a text with the losses after a training step and the number of unreadable examples."""
    held_out = "" if state.last is None else f", held-out loss {state.last['loss']:.4f}"
    unread = f", {len(state.unshown):,} examples could not be shown" if state.unshown else ""
    return f"loss {loss:.4f}{held_out}{unread}"


@dataclass(frozen=True, kw_only=True)
class ExampleSettings(DataSettings):
    """Settings of `write_examples`."""

    max_shown: Annotated[int, Option(name="--n", low=1, high=500)] = 12
    """Number of examples on the page, balanced over data sets, splits and labels."""
    out: Annotated[Path | None, FOLDER] = None
    """Output folder for the page.  [default: examples-NAME]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingExamplesPageResult:
    """Written page of training examples, the examples on the page and the excluded clips."""

    page: Path
    recipe: str
    view: str
    n_train: int
    n_held_out: int
    left_out: Mapping[str, int]
    not_compared: Mapping[str, int]
    examples: "tuple[TrainingExamplePageItem, ...]"


def write_examples(settings: ExampleSettings) -> TrainingExamplesPageResult:
    """Read the training examples of a recipe, and write a page that shows some of them."""
    with needs_extra("eval"):
        from unreel.media.access import open_media_reader
        from unreel.training.examples.input_size import open_input_sizer
        from unreel.training.examples.page import PAGE, write_examples_page
        from unreel.training.examples.reading import read_training_examples
        from unreel.training.recipe import read_train_recipe

    access = settings.build_access()
    recipe = read_train_recipe(settings.recipe, data=settings.data, changes=settings.changes)
    folder = settings.out or Path(f"examples-{make_safe_file_name(recipe.name)}")
    examples = read_training_examples(
        recipe,
        access=access,
        folder=OutputDirectory(folder).make("found"),
        accept_leak=settings.accept_leak,
    )
    view = open_input_sizer(recipe)
    with open_media_reader(access.settings, trusted=settings.trusted) as reader:
        items = write_examples_page(
            recipe,
            examples,
            loader=_build_loader(reader, access),
            sizer=view,
            limit=settings.max_shown,
            out=folder,
        )
    return TrainingExamplesPageResult(
        page=folder / PAGE,
        recipe=recipe.name,
        view=view.description,
        n_train=len(examples.train),
        n_held_out=len(examples.held_out),
        left_out=examples.left_out.reasons,
        not_compared=examples.not_compared,
        examples=tuple(items),
    )


def _build_loader(reader: "MediaReader", access: "ClipAccessSettings") -> "ClipInputLoader":
    from unreel.engine.storage_access import find_clip_change, provide_local_clip_file
    from unreel.reviewers.clip_inputs import ClipInputLoader

    return ClipInputLoader(
        reader=reader,
        open_file=partial(provide_local_clip_file, access=access),
        find_change=find_clip_change,
    )


@dataclass(frozen=True, kw_only=True)
class ExportSettings(DataSettings):
    """Settings of `export_examples`."""

    trainer: Annotated[Literal["chat", "llamafactory"], Option(name="--to")]
    """Format of the export. chat: JSON Lines of messages with images, for any trainer; llamafactory: a folder that LLaMA-Factory trains on."""
    out: Annotated[Path, Option(kind="path")]
    """New folder for the exported data and media files."""
    media: Literal["link", "copy"] = "link"
    """How clips get into the output folder; they are never re-encoded. link: links to the files; copy: copies."""


def export_examples(
    settings: ExportSettings, on_step: OnStep
) -> "tuple[ExampleExportResult, SkippedExampleCounts]":
    """Write the training data of a recipe for another trainer; return the result and the excluded clips.

    Raises:
        UnreadableSourceError: The output folder is not empty.
    """
    with needs_extra("eval"):
        from unreel.media.access import open_media_reader
        from unreel.training.examples.example import compute_epoch_order
        from unreel.training.examples.reading import read_training_examples
        from unreel.training.export import FORMATS, HELD_OUT, TRAIN, export_training_examples
        from unreel.training.recipe import read_train_recipe

    out = settings.out
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UnreadableSourceError(str(out), "not an empty folder", "Name a new one")
    recipe = read_train_recipe(settings.recipe, data=settings.data, changes=settings.changes)
    export_format = FORMATS[settings.trainer](recipe)
    access = settings.build_access()
    with TemporaryDirectory(prefix="unreel-") as cache:
        examples = read_training_examples(
            recipe,
            access=access,
            folder=Path(cache),
            accept_leak=settings.accept_leak,
            on_step=on_step,
        )
    order = compute_epoch_order(examples.train, weights=examples.weights, seed=recipe.seed, epoch=0)
    parts = {TRAIN: [examples.train[i] for i in order], HELD_OUT: examples.held_out}
    with open_media_reader(access.settings, trusted=settings.trusted) as reader:
        exported = export_training_examples(
            export_format,
            parts,
            folder=out,
            loader=_build_loader(reader, access),
            keeping=settings.media,
        )
    return exported, examples.left_out


def read_shipped_recipes() -> "list[TrainRecipe]":
    """Return the recipes of unreel."""
    from unreel.training.recipe import list_shipped_recipes, read_train_recipe

    return [read_train_recipe(name) for name in list_shipped_recipes()]


def read_card(checkpoint: Path) -> "tuple[CheckpointModelCard, str]":
    """Return the card of a checkpoint, and its text."""
    from unreel.training.model_card import format_model_card, read_model_card

    card = read_model_card(checkpoint)
    return card, format_model_card(card)


def read_process_info() -> "TrainingProcessInfo":
    """Return the number of processes of this training, and the rank of this one."""
    with needs_extra("train"):
        from unreel.training.run import read_training_process_info

    return read_training_process_info()


def write_launch_config(
    recipe: "TrainRecipe", folder: Path, *, typed: tuple[str, ...]
) -> "AccelerateLaunchCommands":
    """Write Accelerate's configuration of a training on several devices; return the commands."""
    from unreel.training.accelerate_config import write_accelerate_config

    return write_accelerate_config(recipe.devices, recipe.model, folder, typed=typed)


def build_callbacks(**callbacks: Callable[..., Any]) -> "TrainingCallbacks":
    """Return the callbacks of a training."""
    from unreel.training.run import TrainingCallbacks

    return TrainingCallbacks(**callbacks)


@dataclass(frozen=True, kw_only=True)
class CompareCheckpointSettings(LayoutSettings, TrustSettings):
    """Settings of the comparison of two checkpoints or runs."""

    first: Annotated[str, Option(is_argument=True)]
    second: Annotated[str, Option(is_argument=True)]
    benchmark: Annotated[str | None, Option(kind="existing text", metavar="PATH")] = None
    """Benchmark on which both checkpoints are evaluated. Not needed for runs."""
    protocol: str | None = None
    """Protocol of the questions.  [default: the protocol on which the checkpoint was trained]"""
    split: str | None = None
    """Name of the benchmark split to use, for example test.  [default: all splits]"""
    out: str | None = None
    """Output folder for the two runs.  [default: compare-FIRST-SECOND]"""
    metrics: Annotated[tuple[str, ...], Option(name="--metric", metavar="NAME")] = ()
    """Name of a metric in the scorecard, for example `balanced`. Repeatable.  [default: all metrics]"""


def is_checkpoint(source: str) -> bool:
    """Return whether `source` is the folder of a checkpoint."""
    from unreel.reviewers.local.checkpoint import ADAPTER, CONFIG, FILE

    return any(Path(source, file).is_file() for file in (FILE, CONFIG, ADAPTER))


def require_benchmark(settings: CompareCheckpointSettings, checkpoint: str) -> str:
    """Return the benchmark on which a checkpoint is evaluated; raise if none is named."""
    if settings.benchmark is None:
        raise InvalidSettingError(
            "--benchmark",
            f"{checkpoint} is a checkpoint, and no benchmark is named",
            "Name the benchmark, or two runs of `unreel eval`",
        )
    return settings.benchmark


def require_trained_protocol(checkpoint: str) -> str:
    """Return the only protocol on which a checkpoint was trained; raise if there are none or several."""
    from unreel.reviewers.local.checkpoint import read_checkpoint_input_spec

    input_spec = read_checkpoint_input_spec(Path(checkpoint))
    protocols = [] if input_spec is None else [each.protocol for each in input_spec.instruments]
    if len(protocols) != 1:
        raise InvalidSettingError(
            "--protocol",
            f"{checkpoint} was trained on {' and '.join(protocols) or 'no protocol'}",
            "Name the protocol for both",
        )
    return protocols[0]
