"""People's judgements: a campaign, its screens, and a consensus that can be trusted."""
