"""The run of a season: plan, clips of creators, answers of reviewers."""
