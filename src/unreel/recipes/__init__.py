"""Recipes of jobs: closed and bounded sections of TOML, with uniform error messages."""
