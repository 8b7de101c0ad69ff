"""What a training will take, told before anything starts: tokens, memory, hours and money, with the formula."""
