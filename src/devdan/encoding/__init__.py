"""From tables as people have them to the inputs of a network: numbers, flags, categories, dates and times."""
