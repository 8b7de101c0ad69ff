"""From raw video to a frozen, audited benchmark: one recipe, steps on the engine, the same bytes each time."""
