"""Reviewers over a benchmark: questions put, answers kept, scorecards made. May import `engine`, `reviewers`, `benchmarks` and all below."""
