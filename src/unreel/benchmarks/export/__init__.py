"""Export of benchmarks as tasks of lmms-eval and VLMEvalKit, with our own protocols."""
