"""Models at work: predicting from tables, learning on, and what there is to know about a model."""
