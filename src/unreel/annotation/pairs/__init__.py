"""Pairs of clips to compare, and the ranking that people's comparisons give."""
