"""The season file, its benchmark, scenes and working folder.

Where to look:
    `recipe.py`: the season file, and a commented template.
    `scenes.py`: scenes of the benchmark, and requests to creators.
    `benchmark.py`: the clip set that reviewers judge.
    `folder.py`: files of a season.
"""
