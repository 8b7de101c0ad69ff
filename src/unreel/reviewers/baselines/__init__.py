"""Baselines: reviewers that ignore the clip, or use only its file properties or its motion.

Where to look:
    `constant.py`: constant and random answers.
    `metadata.py`: properties of the file.
    `motion.py`: irregularity of motion.
    `fitting.py`: cross-fitted classifiers.
    `folds.py`: held-out scenes and creators.
"""
