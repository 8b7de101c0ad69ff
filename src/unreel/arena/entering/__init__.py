"""How somebody enters a season: checked before any money is spent, and told what became of it."""
