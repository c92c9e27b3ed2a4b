"""Set before SciPy is imported, so that scikit-learn's check of array API input is not skipped."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")
