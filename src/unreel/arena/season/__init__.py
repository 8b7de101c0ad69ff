"""The season file, its benchmark, scenes and working folder.

Where to look:
    `recipe.py`: the season file.
    `template.py`: writer of a commented season file.
    `scenes.py`: scenes of the benchmark.
    `briefs.py`: requests to creators.
    `benchmark.py`: the clip set that reviewers judge.
    `folder.py`: files of a season.
"""
