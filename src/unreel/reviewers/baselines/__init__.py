"""Baselines: reviewers that ignore the clip, or look only at its file or motion.

Where to look:
    `constant.py`: constant and random answers.
    `metadata.py`: properties of the file.
    `motion.py`: evenness of motion.
    `fitting.py`: cross-fitted classifiers.
    `folds.py`: held-out scenes and creators.
"""
