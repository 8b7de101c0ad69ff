"""The season file, its benchmark, scenes and working folder.

Where to look:
    `recipe.py`: the season file, and a commented template.
    `scenes.py`: scenes of the benchmark, and requests to creators.
    `clip_set.py`: the clips that reviewers judge, as one benchmark.
    `folder.py`: files of a season.
"""
