"""Publication of settled judgements as a benchmark for evaluation, training and reports."""
