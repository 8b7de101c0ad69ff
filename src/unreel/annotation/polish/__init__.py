"""People's rationales merged and standardised by a language model, and confirmed by people."""
