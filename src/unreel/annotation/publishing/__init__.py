"""Publication of the consensus of a campaign as a benchmark for evaluation, training and reports."""
