"""Words typed by people: parse, call, print. May import every layer; nothing imports it."""
