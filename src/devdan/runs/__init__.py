"""What is kept on disk: the folder of a run, and that of a grid of runs. Only this package spells their file names."""
