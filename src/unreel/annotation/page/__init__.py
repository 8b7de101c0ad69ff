"""A campaign on one page: what people disagree about first, and everyone's marks on one timeline."""
