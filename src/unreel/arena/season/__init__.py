"""The season file, its benchmark, scenes and working folder.

Where to look:
    `scenes.py`: scenes of the benchmark, requests to creators, and the clips that reviewers judge, as one benchmark.
    `folder.py`: the season file, a commented template, and the files of a season.
"""
