"""Benchmarks: sets of clips with their ground truth, and the published figures. Imports `protocols`, `media`, `stats` and `core`."""
