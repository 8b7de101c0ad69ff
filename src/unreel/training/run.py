"""Training from recipe to model: data, processes, stored files, resume and result."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from transformers import AutoProcessor

from unreel.core.output_files import OutputDirectory
from unreel.engine.location import StorageLocation
from unreel.engine.progress import OnStep
from unreel.engine.storage_access import ClipAccessSettings
from unreel.engine.writer_lock import build_writer_lock
from unreel.reviewers.local.encoder import RequestEncoder
from unreel.training.checkpoints import INNER, TrainingCheckpoint, TrainingCheckpointStore
from unreel.training.examples.example import (
    ExampleOrder,
    TrainingExample,
    compute_epoch_length,
    count_training_steps,
)
from unreel.training.examples.input_size import estimate_example_tokens
from unreel.training.examples.reading import (
    TrainingDataSummary,
    TrainingExampleSet,
    read_training_examples,
)
from unreel.training.grpo import (
    GrpoQuestionDataset,
    GrpoResult,
    GrpoTrainerCallback,
    find_grpo_start_checkpoint,
    require_grpo_support,
    run_grpo_training,
    save_grpo_model,
)
from unreel.training.manifest import (
    Going,
    TrainingManifest,
    TrainingResult,
    prepare_training_folder,
)
from unreel.training.model import (
    BaseModelFolder,
    build_checkpoint_input_spec,
    find_base_model,
    load_trainable_model,
)
from unreel.training.model_card import CheckpointModelCard, read_package_versions
from unreel.training.recipe import AnswerRewardSection, TrainRecipe
from unreel.training.rewards.reward import group_examples_by_question
from unreel.training.rewards.reward_settings import compute_answer_reward_settings
from unreel.training.sft.batches import ExampleCollator, open_clip_input_cache
from unreel.training.sft.trainer import (
    HISTORY,
    ResumableSftTrainer,
    SftTrainerContext,
    read_early_stopping_state,
)
from unreel.training.sft.validation import EarlyStoppingState, HoldoutEvaluator


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingProcessInfo:
    """Number of processes of a training, whether this one is the first, and its number of devices."""

    n: int
    """Number of processes on all machines."""
    is_first: bool
    """Whether this is the process that reads, writes and reports."""
    n_devices: int
    """Number of GPUs of this machine; 0 if the training uses its CPU."""


def read_training_process_info() -> TrainingProcessInfo:
    """Return the place of this process among the processes of the training, as set by its launcher."""
    n_devices = torch.cuda.device_count()
    state = PartialState(cpu=n_devices == 0)
    return TrainingProcessInfo(
        n=state.num_processes, is_first=state.is_main_process, n_devices=n_devices
    )


GALLERY_BYTES = 2 << 30
"""Maximum size of the cache of clip inputs; a clip with 8 frames takes about 200 kB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCallbacks:
    """Callbacks of a training for progress and stop requests."""

    on_reading: OnStep = lambda _part, _progress: None
    on_examples: Callable[[int, int], None] = lambda _n, _tokens: None
    """Callback in the first process with the number of examples of an epoch and an estimate of their tokens."""
    on_start: Callable[[int, int], None] = lambda _from, _to: None
    on_step: Callable[[int, float, EarlyStoppingState], None] = lambda _step, _loss, _vigil: None
    should_stop: Callable[[], bool] = lambda: False


def train(
    recipe: TrainRecipe,
    folder: Path,
    *,
    access: ClipAccessSettings,
    going: Going = "either",
    accept_leak: bool = False,
    callbacks: TrainingCallbacks = TrainingCallbacks(),  # noqa: B008  a frozen value
) -> TrainingResult:
    """Train the model of `recipe` and write it to `folder`/model; a stopped training is resumed.

    Raise `UnreadableSourceError` if the folder has another training, or a training is running
    there.
    """
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    if recipe.reward is not None:
        require_grpo_support(recipe)
    process = read_training_process_info()
    with _lock_training_folder(folder) if process.is_first else contextlib.nullcontext():
        examples: TrainingExampleSet = _broadcast_from_first(
            process,
            lambda: read_training_examples(
                recipe,
                access=access,
                folder=folder / "data",
                accept_leak=accept_leak,
                on_step=callbacks.on_reading,
            ),
        )
        base = _broadcast_from_first(process, lambda: find_base_model(recipe.model))
        begun = TrainingManifest(
            recipe=recipe.model_dump(mode="json"),
            data=examples.digest,
            base=base.digest,
            n_devices=process.n,
        )
        start = _broadcast_from_first(
            process, lambda: prepare_training_folder(begun, folder, going=going)
        )
        job = _TrainingJob(recipe, folder, access, examples, base, begun, callbacks)
        if recipe.reward is not None:
            return job.improve(recipe.reward)
        return job.run(start, n_devices=process.n)


@dataclass(frozen=True, slots=True)
class _TrainingJob:
    recipe: TrainRecipe
    folder: Path
    access: ClipAccessSettings
    examples: TrainingExampleSet
    base: BaseModelFolder
    begun: TrainingManifest
    spectator: TrainingCallbacks

    def run(self, checkpoint: TrainingCheckpoint | None, *, n_devices: int) -> TrainingResult:
        in_a_pass = compute_epoch_length(self.examples.train, self.examples.weights)
        n_steps = count_training_steps(
            self.recipe.optimise, in_a_pass=in_a_pass, n_devices=n_devices
        )
        vigil = (
            EarlyStoppingState()
            if checkpoint is None
            else read_early_stopping_state(checkpoint.path)
        )
        if checkpoint is not None and vigil.ended:
            return self._end(vigil, checkpoint.step, n_steps, loss=None, checkpoint=checkpoint)
        self._report_examples(self.examples.train, are_answers_given=True)
        self.spectator.on_start(0 if checkpoint is None else checkpoint.step, n_steps)
        n_workers = self.recipe.optimise.workers
        with open_clip_input_cache(GALLERY_BYTES, shared=n_workers > 0) as gallery:
            teacher = self._teacher(checkpoint, vigil, n_steps=n_steps, gallery=gallery)
            teacher.train(
                resume_from_checkpoint=None if checkpoint is None else str(checkpoint.path)
            )
        losses = [entry["loss"] for entry in teacher.state.log_history if "loss" in entry]
        step = teacher.state.global_step
        return self._end(
            vigil, step, n_steps, loss=losses[-1] if losses else None, checkpoint=checkpoint
        )

    def _teacher(
        self,
        checkpoint: TrainingCheckpoint | None,
        state: EarlyStoppingState,
        *,
        n_steps: int,
        gallery: Any,
    ) -> ResumableSftTrainer:
        recipe, input_spec = self.recipe, build_checkpoint_input_spec(self.recipe, self.base)
        encoder = RequestEncoder(self.base.folder, input_spec)
        order = ExampleOrder(self.examples.train, weights=self.examples.weights, seed=recipe.seed)
        examples = ExampleCollator(order, encoder=encoder, access=self.access, gallery=gallery)
        looker = HoldoutEvaluator(
            self.examples.held_out,
            examples,
            encoder=encoder,
            limit=recipe.watch.clips,
            max_tokens=recipe.max_tokens,
            seed=recipe.seed,
        )
        desk = SftTrainerContext(
            recipe=recipe,
            folder=self.folder,
            input_spec=input_spec,
            collator=examples,
            n_examples=len(self.examples.train),
            look=looker,
            card=self.card,
            on_step=self.spectator.on_step,
            should_stop=self.spectator.should_stop,
        )
        is_lora = recipe.model.tune == "lora"
        weights = self.base.folder if is_lora or checkpoint is None else checkpoint.path
        adapter = checkpoint.path if is_lora and checkpoint is not None else None
        model = load_trainable_model(recipe.model, weights, adapter=adapter, seed=recipe.seed)
        processor = AutoProcessor.from_pretrained(self.base.folder, local_files_only=True)
        return ResumableSftTrainer(model, desk, processor=processor, n_steps=n_steps, state=state)

    def improve(self, reward: AnswerRewardSection) -> TrainingResult:
        """Train by GRPO without checkpoints: a stopped training starts again from the beginning."""
        recipe = self.recipe
        questions = group_examples_by_question(self.examples.train)
        first, weights = [q.example for q in questions], self.examples.weights
        n_steps = count_training_steps(
            recipe.optimise, in_a_pass=compute_epoch_length(first, weights), n_devices=1
        )
        done = TrainingCheckpointStore(self.folder).model()
        if done is not None:
            return self._improved(done.path, done.step, n_steps)
        start = find_grpo_start_checkpoint(recipe, self.base, self.folder)
        self._report_examples(first, are_answers_given=False)
        self.spectator.on_start(0, n_steps)
        callback = GrpoTrainerCallback(self.spectator.on_step, self.spectator.should_stop)
        with open_clip_input_cache(GALLERY_BYTES, shared=False) as gallery:
            order = ExampleOrder(first, weights=weights, seed=recipe.seed)
            examples = ExampleCollator(
                order, encoder=start.encoder, access=self.access, gallery=gallery
            )
            terms = compute_answer_reward_settings(reward, [q.truths for q in questions])
            n = n_steps * recipe.optimise.batch_size * recipe.optimise.accumulate
            model, improved = run_grpo_training(
                recipe,
                reward,
                start,
                dataset=GrpoQuestionDataset(order, questions, examples, terms, n=n),
                held_out_examples=self.examples.held_out,
                callback=callback,
            )
        if improved.step < n_steps:
            return self._improved(None, improved.step, n_steps, improved)
        card = self.card(callback.vigil, improved.step)
        path = save_grpo_model(model, start.encoder, improved, card, self.folder)
        return self._improved(path, improved.step, n_steps, improved)

    def _report_examples(
        self, examples: Sequence[TrainingExample], *, are_answers_given: bool
    ) -> None:
        """Report the examples of an epoch; without given answers, only the prompts' tokens are counted."""
        if not read_training_process_info().is_first:
            return
        weights, model = self.examples.weights, self.recipe.model
        n_tokens = 0.0
        for example in examples:
            tokens = estimate_example_tokens(example, model.family, self.recipe.input)
            n_answer = tokens.answer if are_answers_given else 0
            n_tokens += weights[example.data] * (tokens.prompt + n_answer)
        n_examples = round(compute_epoch_length(examples, weights))
        self.spectator.on_examples(n_examples, round(n_tokens))

    def _improved(
        self, model: Path | None, step: int, n_steps: int, result: GrpoResult | None = None
    ) -> TrainingResult:
        return TrainingResult(
            folder=self.folder,
            model=model,
            step=step,
            n_steps=n_steps,
            loss=result.loss if result else None,
            held_out_loss=None,
            ended="asked" if model is None else "done",
            went_on_from=None,
            unshown=result.unshown if result else {},
            gain=result.gain if result else None,
        )

    def card(self, state: EarlyStoppingState, step: int) -> CheckpointModelCard:
        """Return the model card of the checkpoint of `step`."""
        return CheckpointModelCard(
            name=self.recipe.name,
            step=step,
            recipe=self.begun.recipe,
            data={
                "digest": self.begun.data,
                "n_train": len(self.examples.train),
                "n_held_out": len(self.examples.held_out),
                "benchmarks": [_format_data_summary(data) for data in self.examples.data],
                "left_out": dict(self.examples.left_out.reasons),
                "leaks": [str(leak) for leak in self.examples.leaks],
            },
            base={"name": self.base.name, "digest": self.base.digest, "licence": self.base.licence},
            licences=sorted({licence for data in self.examples.data for licence in data.licences}),
            look=state.last,
            unshown=state.unshown,
            versions=read_package_versions(),
        )

    def _end(
        self,
        state: EarlyStoppingState,
        step: int,
        n_steps: int,
        *,
        loss: float | None,
        checkpoint: TrainingCheckpoint | None,
    ) -> TrainingResult:
        chosen = state.best_step if self.recipe.watch.patience is not None else step
        model = None
        if state.ended:
            chosen = step if chosen is None else chosen
            model = self.folder / "model"
            if read_training_process_info().is_first:
                write_final_model(self.folder, step=chosen)
        return TrainingResult(
            folder=self.folder,
            model=model,
            step=step if model is None or chosen is None else chosen,
            n_steps=n_steps,
            loss=loss,
            held_out_loss=None if state.last is None else state.last["loss"],
            ended=state.ended or "asked",  # type: ignore[arg-type]  # as `EarlyStoppingState` keeps it
            went_on_from=None if checkpoint is None else checkpoint.step,
            unshown=state.unshown,
        )


def write_final_model(folder: Path, *, step: int) -> None:
    """Write the checkpoint of `step` to `folder`/model, without the optimiser and trainer states."""
    checkpoints, root = TrainingCheckpointStore(folder), OutputDirectory(folder, published=True)
    source, current = checkpoints.at(step), checkpoints.model()
    if source is None or (current is not None and current.step == step):
        return
    draft = checkpoints.begin("model")
    name = draft.relative_to(folder).as_posix()
    for file in root.files(source.path.relative_to(folder).as_posix()):
        if not file.startswith(f"{INNER}/") and file not in {HISTORY, "seal.json"}:
            root.link(source.path / file, f"{name}/{file}")
    checkpoints.finish("model", step=step)


def _format_data_summary(data: TrainingDataSummary) -> str:
    """Format training data as benchmark, split, number of examples and hash, without local path."""
    split = "" if data.split is None else f", split {data.split}"
    contents = "" if data.identity is None else f", contents {data.identity.fingerprint}"
    return f"{Path(data.benchmark).name}{split}: {data.n_examples:,} examples{contents}"


@contextlib.contextmanager
def _lock_training_folder(folder: Path) -> Iterator[None]:
    """Lock the training folder, so that a second training in it raises an error."""
    with build_writer_lock(StorageLocation(str(folder)) / "training"):
        yield


def _broadcast_from_first(process: TrainingProcessInfo, find: Callable[[], Any]) -> Any:
    """Call `find` in the first process of the training only, and return its result in all processes."""
    result = [find() if process.is_first else None]
    if process.n > 1:
        broadcast_object_list(result)
    return result[0]
