"""Runs: an evaluation in a folder, with records, checkpoints, and at the end the model, a summary and a report."""
