"""The season file, its benchmark, scenes and working folder.

Where to look:
    `recipe.py`: the season file.
    `template.py`: a commented season file.
    `scenes.py`: scenes of the benchmark.
    `briefs.py`: requests to creators.
    `benchmark.py`: the benchmark that reviewers see.
    `folder.py`: files of a season.
"""
