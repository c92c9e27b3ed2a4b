"""DEVDAN: a neural classifier for data streams that builds its own hidden layer.

>>> from devdan import DEVDAN
>>> DEVDAN(masking=0.2)
DEVDAN(masking=0.2)
"""

from devdan.model.devdan import DEVDAN
from devdan.model.ensemble import DEVDANEnsemble
from devdan.model.modelfile import ModelFileError
from devdan.model.state import Event

__version__ = "0.1.0"
__all__ = ["DEVDAN", "DEVDANEnsemble", "Event", "ModelFileError"]
