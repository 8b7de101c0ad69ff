"""Training of reviewers on human judgements.

Where to look:
    `recipe.py`: settings, and the shipped recipes.
    `run.py`: a training from recipe to model.
    `sft/`: supervised fine-tuning.
    `grpo.py`: reinforcement learning.
    `rewards/`: rewards of answers.
    `examples/`: questions with their target answers.
    `export.py`: export of examples to other trainers, in their formats.
    `checkpoints.py`: atomic checkpoints.
    `manifest.py`: start settings, compared before a training resumes.
    `model_card.py`: model card of a checkpoint.
"""
