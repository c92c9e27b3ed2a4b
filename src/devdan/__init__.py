"""DEVDAN: a neural classifier for data streams that builds its own hidden layer.

>>> from devdan import DEVDAN
>>> DEVDAN(masking=0.2)
DEVDAN(masking=0.2)
"""

from typing import TYPE_CHECKING

from devdan import lazy

if TYPE_CHECKING:
    from devdan.fleet.fleet import DEVDANFleet, open_model
    from devdan.histories.histories import Histories
    from devdan.kernel.state import Event
    from devdan.model.devdan import DEVDAN
    from devdan.model.ensemble import DEVDANEnsemble
    from devdan.model.explain import Explanation, Unit
    from devdan.model.modelfile import ModelFileError
else:
    __getattr__, __dir__ = lazy.exports(
        __name__,
        DEVDAN="model.devdan",
        DEVDANEnsemble="model.ensemble",
        DEVDANFleet="fleet.fleet",
        Event="kernel.state",
        Explanation="model.explain",
        Histories="histories.histories",
        ModelFileError="model.modelfile",
        Unit="model.explain",
        open_model="fleet.fleet",
    )

__version__ = "0.1.0"
__all__ = [
    "DEVDAN",
    "DEVDANEnsemble",
    "DEVDANFleet",
    "Event",
    "Explanation",
    "Histories",
    "ModelFileError",
    "Unit",
    "open_model",
]
