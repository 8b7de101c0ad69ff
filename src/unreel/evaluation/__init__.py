"""Evaluation of models on a benchmark: questions, stored answers, scorecards. May import `engine`, `reviewers`, `benchmarks` and below.

Where to look:
    `run_job.py`: a run from benchmark to scorecard.
    `batch_job.py`: questions of a run in batches of a provider.
    `recipe.py`: settings of a run.
    `forecast.py`: questions and cost before a run.
    `scoring.py`: scorecards from stored answers.
    `comparison.py`: paired comparison of reviewers.
    `judge.py`: the judge of explanations.
    `review.py`: reviewers on a single clip and on its variants.
    `long_clip_review.py`: windows of a long clip.
    `opinion.py`: verdicts on one clip, also under small changes of it.
    `run_check.py`: check of a stored run, and its restoration.
    `export.py`: a run as rows.
"""
