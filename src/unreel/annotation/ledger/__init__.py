"""The ledger: what people were asked and what they said, added to and never written over."""
