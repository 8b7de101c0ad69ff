"""What an answer earns, from the truth alone: pure functions, the same for every trainer that calls them."""
