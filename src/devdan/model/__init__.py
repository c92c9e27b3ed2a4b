"""The models: the compiled kernel, its state and options, and the estimators built on them."""
