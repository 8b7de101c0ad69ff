"""One clip before its reviewers: the evidence page, the terminal, and what the file says of its origin."""
