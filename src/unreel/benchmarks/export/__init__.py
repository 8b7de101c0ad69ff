"""Export of benchmarks with unreel's protocols as tasks of lmms-eval and VLMEvalKit."""
