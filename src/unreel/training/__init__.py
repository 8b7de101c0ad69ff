"""Training of reviewers on human judgements.

Where to look:
    `recipe.py`: settings, and the shipped recipes.
    `run.py`: a training from recipe to model.
    `sft/`: supervised fine-tuning.
    `grpo/`: reinforcement learning.
    `rejection/`: rejection sampling.
    `rewards/`: rewards of answers.
    `examples/`: questions with their target answers.
    `plan/`: estimate of memory, time and cost.
    `formats/`: export of examples to other trainers.
    `checkpoints.py`: atomic checkpoints.
    `manifest.py`: start settings, compared before a training resumes.
    `model_card.py`: model card of a checkpoint.
"""
