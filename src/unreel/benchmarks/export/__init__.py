"""Benchmarks as tasks of lmms-eval and VLMEvalKit, asked and scored with our own instruments."""
