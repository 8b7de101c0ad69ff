"""A recipe of a small curation; `{footage}` is where its clips lie."""

RECIPE = """
name = "small"
seed = 5
[source]
path = "{footage}"
licence = "CC0"
[split]
shortest_s = 0.5
[lengths]
[normalise]
width = 96
height = 64
rate = 12
[freeze]
version = "1.0"
shares = [3, 1, 1]
labels = []
"""
