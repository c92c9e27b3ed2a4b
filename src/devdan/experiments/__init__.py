"""Evaluations that are kept on disk: one run in its folder, or a grid of runs in parallel processes."""
