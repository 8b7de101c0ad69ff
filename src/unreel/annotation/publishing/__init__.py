"""From settled judgements to a benchmark that is asked about, taught and reported."""
