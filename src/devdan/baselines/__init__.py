"""The methods of the paper's Table 1 other than DEVDAN and its autoencoders: evolving fuzzy rules and their ensembles.

>>> from devdan.baselines import PENsemble
>>> PENsemble(penalty=0.4)
PENsemble(penalty=0.4)
"""

from devdan.baselines.events import RuleEvent
from devdan.baselines.pclass import PClass
from devdan.baselines.pensemble import PENsemble
from devdan.baselines.pensemble_plus import PENsemblePlus

__all__ = ["PClass", "PENsemble", "PENsemblePlus", "RuleEvent"]
