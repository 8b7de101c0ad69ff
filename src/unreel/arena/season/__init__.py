"""The season file, its benchmark, scenes, budget and working folder."""
