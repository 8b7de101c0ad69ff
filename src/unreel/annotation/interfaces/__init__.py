"""The screens that annotators see, and what comes back from them."""
