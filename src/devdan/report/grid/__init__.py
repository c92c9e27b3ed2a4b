"""A grid of runs: tables, ranks, and the page that shows them."""
