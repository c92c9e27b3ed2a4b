"""The page of a run, and its picture."""
