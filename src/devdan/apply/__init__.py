"""Using a model that has been saved: predicting tables, and learning on from streams."""
