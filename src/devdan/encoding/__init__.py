"""The encoding of tables as inputs of a network: numbers, flags, categories, dates and times."""
