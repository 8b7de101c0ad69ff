"""Figures that the papers of the benchmarks published, as data files that are shown beside results.

`data/` has a CSV file for each printed table, cell by cell as printed, misprints included. They were
copied by hand from the papers: DeepTraceReward (arXiv 2509.22646), VideoRealBench (CVPR 2026) and Video
Reality Test (arXiv 2512.13281). `printed_tables.py` names the table of each file. The script
`studies/published/recompute.py` of the repository checks them, and writes docs/errata.md.
"""
