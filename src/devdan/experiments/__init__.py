"""Evaluations stored on disk: a single run in its folder, or a grid of runs in parallel processes."""
