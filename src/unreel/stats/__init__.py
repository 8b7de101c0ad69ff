"""Statistics with intervals by clip and scene. Imports `core`, numpy and scipy; evalica only for rankings.

Where to look:
    `bootstrap.py`: bootstrap intervals.
    `resampling.py`: resampling by scene and creator.
    `clusters.py`: scene and creator of each row.
    `label_digests.py`: numbers of distinct labels in bounded memory.
    `paired_differences.py`: paired differences: jackknife intervals and Holm correction.
    `power.py`: the smallest difference that a benchmark can show.
    `detection_metrics.py`: AUC, F1 and other detection metrics.
    `agreement.py`: agreement of raters.
    `skill_model.py`: ability of reviewers and realism of creators.
    `ranking.py`: Bradley-Terry strengths.
    `next_pair.py`: the next pair to compare, by information gain.
    `dawid_skene.py`: true labels from noisy annotators.
"""
