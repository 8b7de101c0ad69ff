"""TRL's supervised trainer with unreel's batches, checkpoints and validation, and the arguments of trainers."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from accelerate.utils import gather_object
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import SFTConfig, SFTTrainer

from unreel.core.errors import (
    GO_ON,
    InvalidSettingError,
    MachineError,
    format_library_error,
    raise_if_machine_error,
)
from unreel.core.input_files import parse_json_object, read_limited_bytes
from unreel.core.output_files import OutputDirectory
from unreel.reviewers.local.checkpoint import CheckpointInputSpec, write_checkpoint_input_spec
from unreel.training.checkpoints import INNER, TrainingCheckpointStore, format_checkpoint_name
from unreel.training.curve import HELD_OUT, LOSS, Moment, write_training_curve
from unreel.training.model_card import CheckpointModelCard, write_model_card
from unreel.training.recipe import TrainRecipe
from unreel.training.sft.batches import (
    PLACE,
    UNUSABLE,
    ExampleCollator,
    build_unusable_examples_error,
)
from unreel.training.sft.validation import EarlyStoppingState, TrainingValidationResult


def build_trainer_arguments(recipe: TrainRecipe, folder: Path, *, n_steps: int) -> dict[str, Any]:
    """Build the transformers arguments that supervised training and GRPO share."""
    optimise, model = recipe.optimise, recipe.model
    is_warmed = optimise.schedule == "constant" and optimise.warmup > 0
    return {
        "output_dir": str(folder),
        "max_steps": n_steps,
        "per_device_train_batch_size": optimise.batch_size,
        "learning_rate": optimise.learning_rate,
        "lr_scheduler_type": "constant_with_warmup" if is_warmed else optimise.schedule,
        "warmup_steps": optimise.warmup,
        "weight_decay": optimise.weight_decay,
        "adam_beta1": optimise.betas[0],
        "adam_beta2": optimise.betas[1],
        "max_grad_norm": optimise.max_grad_norm,
        "seed": recipe.seed,
        "bf16": model.precision == "bf16",
        "use_cpu": not torch.cuda.is_available(),
        "gradient_checkpointing": model.gradient_checkpointing,
        "dataloader_pin_memory": torch.cuda.is_available(),
        "remove_unused_columns": False,
        "logging_steps": 1,
        "report_to": list(recipe.watch.log_to) or "none",
        "disable_tqdm": True,
        "trust_remote_code": False,
    }


STATE = f"{INNER}/vigil.json"
HISTORY = "trainer_state.json"
_STATE_BYTES = 64 << 20
MAX_UNUSABLE = 0.1
"""Maximum fraction of examples so far that cannot be decoded or encoded; above it, the training fails."""
_FEW = 10
"""Number of failed clips that is always accepted."""

LookAt = Callable[["ResumableSftTrainer"], TrainingValidationResult | None]
"""Function that validates on the held-out examples; it returns `None` if nothing is held out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SftTrainerContext:
    """Everything that the supervised trainer needs except the model: recipe, data and callbacks."""

    recipe: TrainRecipe
    folder: Path
    input_spec: CheckpointInputSpec
    collator: ExampleCollator
    n_examples: int
    look: LookAt
    card: Callable[[EarlyStoppingState, int], CheckpointModelCard]
    on_step: Callable[[int, float, EarlyStoppingState], None]
    """Callback after each step with the step, its loss, and the early-stopping state."""
    should_stop: Callable[[], bool]


class ResumableSftTrainer(SFTTrainer):  # type: ignore[misc]  # TRL carries no types here
    """Supervised trainer that can be killed at any time and resumes exactly.

    Args:
        model: Model to train.
        context: Context of the training.
        n_steps: Number of steps of the complete training.
        state: Earlier validation results of a resumed training.
    """

    control: Any

    def __init__(
        self,
        model: Any,
        context: SftTrainerContext,
        *,
        processor: Any,
        n_steps: int,
        state: EarlyStoppingState,
    ) -> None:
        self.desk, self.vigil, self.checkpoints = (
            context,
            state,
            TrainingCheckpointStore(context.folder),
        )
        optimise, watch = context.recipe.optimise, context.recipe.watch
        has_workers = optimise.workers > 0
        config = SFTConfig(
            **build_trainer_arguments(context.recipe, context.folder, n_steps=n_steps),
            gradient_accumulation_steps=optimise.accumulate,
            train_sampling_strategy="sequential",
            dataloader_num_workers=optimise.workers,
            dataloader_multiprocessing_context="forkserver" if has_workers else None,
            dataset_kwargs={"skip_prepare_dataset": True},
            max_length=None,
            save_strategy="steps",
            save_steps=watch.save_every,
            logging_nan_inf_filter=False,
        )
        n_rows = n_steps * config.per_device_train_batch_size * config.gradient_accumulation_steps
        super().__init__(
            model=model,
            args=config,
            train_dataset=Dataset.from_dict({PLACE: range(n_rows * config.world_size)}),
            data_collator=context.collator,
            processing_class=processor,
            callbacks=[_SftCallbacks(self)],
        )
        self.remove_callback(PrinterCallback)

    def get_batch_samples(
        self, epoch_iterator: Iterator[Any], num_batches: int, device: Any
    ) -> tuple[list[Any], Any]:
        """Return the batches of a step, and record the examples that could not be decoded or encoded.

        Raise `UnreadableSourceError` if more than 10 % of the examples so far failed, and more than
        10.
        """
        batches = list(islice(epoch_iterator, num_batches))
        for batch in batches:
            for key, reason in batch.pop(UNUSABLE):
                self.vigil.unshown[key] = list(reason)
        at_once = self._train_batch_size * self.args.gradient_accumulation_steps
        n_seen = min((self.state.global_step + 1) * at_once, self.desk.n_examples)
        n_unusable = len(self.vigil.unshown)
        if n_unusable > _FEW and n_unusable > MAX_UNUSABLE * n_seen:
            raise build_unusable_examples_error(self.vigil.unshown.values(), met=n_seen)
        return batches, self._get_num_items_in_batch(batches, device)

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Validate on the held-out examples, save if the loss is the best, and stop if patience is over."""
        self.model.eval()
        with torch.no_grad():
            look = self.desk.look(self)
        self._metrics["eval"].clear()  # metrics that TRL would report
        metrics: dict[str, float] = {}
        if look is not None:
            is_best = self.vigil.note(look)
            metrics = {HELD_OUT: look.loss, **look.metric_values()}
            self.state.log_history.append({"step": look.step, **metrics})
            max_stale_checks = self.desk.recipe.watch.patience
            has_ended = max_stale_checks is not None and self.vigil.since_best >= max_stale_checks
            if has_ended:
                self.vigil.ended = "early"
                self.control.should_training_stop = True
            self.control.should_save = self.control.should_save or is_best or has_ended
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics

    def _save_checkpoint(self, model: Any, trial: Any) -> None:  # noqa: ARG002  the trainer's signature
        step = self.state.global_step
        name = format_checkpoint_name(step)
        with self._explain_save_errors():
            if self.args.should_save:
                self.checkpoints.begin(name, inner=INNER)
            self.accelerator.wait_for_everyone()
            draft = self.checkpoints.draft(name)
            self.save_model(str(draft), _internal_call=True)
            self._save_optimizer_and_scheduler(str(draft / INNER))
            self._save_scaler(str(draft / INNER))
            self._save_rng_state(str(draft / INNER))
            self.vigil.unshown.update(gather_object(list(self.vigil.unshown.items())))
            self.accelerator.wait_for_everyone()
            if self.args.should_save:
                directory = OutputDirectory(draft, published=True)
                # A pickle of arguments: nothing needs it, and loading a pickle can execute code.
                directory.remove("training_args.bin")
                self.state.save_to_json(str(directory.root / HISTORY))
                directory.write(STATE, json.dumps(asdict(self.vigil)).encode())
                write_checkpoint_input_spec(self.desk.input_spec, directory.root)
                write_model_card(self.desk.card(self.vigil, self.state.global_step), directory)
                self.checkpoints.finish(name, step=step)
                watch = self.desk.recipe.watch
                self.checkpoints.prune(keep=watch.keep, best=self.vigil.best_step)
                write_training_curve(
                    self.moments(), OutputDirectory(self.desk.folder, published=True)
                )
            self.accelerator.wait_for_everyone()

    def moments(self) -> list[Moment]:
        """Return all logged metrics so far, one entry per step."""
        by_step: dict[int, dict[str, float]] = {}
        per_step = self.get_total_train_batch_size(self.args) / self.desk.n_examples
        for logged in self.state.log_history:
            if LOSS in logged or HELD_OUT in logged:
                step = logged["step"]
                names = {"learning_rate": "learning rate", "grad_norm": "gradient norm"}
                dropped = {"step", "epoch", "entropy", "num_tokens", "mean_token_accuracy"}
                by_step.setdefault(step, {"step": step, "epoch": step * per_step}).update(
                    {
                        names.get(name, name): float(value)
                        for name, value in logged.items()
                        if isinstance(value, int | float) and name not in dropped
                    }
                )
        return [by_step[step] for step in sorted(by_step)]

    @contextmanager
    def _explain_save_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            before = self.checkpoints.newest()
            state = (
                "no checkpoint is there yet" if before is None else f"{before.path.name} is whole"
            )
            problem = f"the checkpoint of step {self.state.global_step} cannot be written"
            try:
                raise_if_machine_error(error)
            except MachineError as refusal:
                raise MachineError(
                    f"{problem} ({refusal.problem}); {state}", refusal.remedy
                ) from error
            if "PytorchStreamWriter" in str(error):  # torch omits the system's error message
                raise MachineError(
                    f"{problem} ({format_library_error(error)}); {state}", f"Make room. {GO_ON}"
                ) from error
            raise

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        """Load weights with FSDP only; `load_trainable_model` has loaded and checked them otherwise."""
        if self.is_fsdp_enabled:
            super()._load_from_checkpoint(str(Path(resume_from_checkpoint) / INNER), model)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            super()._load_rng_state(str(Path(checkpoint) / INNER))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            super()._load_optimizer_and_scheduler(str(Path(checkpoint) / INNER))


class _SftCallbacks(TrainerCallback):  # type: ignore[misc]  # transformers carries no types here
    """Trainer callbacks: report each step, start validations, and stop on request."""

    def __init__(self, trainer: ResumableSftTrainer) -> None:
        self._teacher = trainer

    def on_step_end(self, _args: Any, state: Any, control: Any, **_: Any) -> Any:
        if state.global_step % self._teacher.desk.recipe.watch.every == 0:
            control.should_evaluate = True
        if state.global_step >= state.max_steps:
            control.should_evaluate = True
            self._teacher.vigil.ended = "done"
        elif self._should_stop():
            control.should_save = control.should_training_stop = True
        return control

    def on_log(self, _args: Any, state: Any, _control: Any, logs: Any = None, **_: Any) -> None:
        if logs and LOSS in logs:
            if not isfinite(logs[LOSS]):
                raise InvalidSettingError(
                    "optimise",
                    f"the loss of step {state.global_step:,} is not a number",
                    "Lower learning_rate, or add warmup, and start again with --fresh",
                )
            self._teacher.desk.on_step(state.global_step, logs[LOSS], self._teacher.vigil)

    def _should_stop(self) -> bool:
        teacher = self._teacher
        votes = torch.tensor(float(teacher.desk.should_stop()), device=teacher.args.device)
        return bool(teacher.accelerator.reduce(votes, "sum").item() > 0)


def read_early_stopping_state(checkpoint: Path) -> EarlyStoppingState:
    """Return the early-stopping state at a checkpoint."""
    return EarlyStoppingState(
        **parse_json_object(read_limited_bytes(checkpoint / STATE, most=_STATE_BYTES))
    )
