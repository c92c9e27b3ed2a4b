"""A fleet: a network of its own for each key, many of them in memory and more on disk."""
