"""What DEVDAN is compared with, and how: the other methods of the paper's Table 1, models by name, grids of runs.

>>> from devdan.bench import PENsemble
>>> PENsemble(penalty=0.4)
PENsemble(penalty=0.4)
"""

from typing import TYPE_CHECKING

from devdan import lazy

if TYPE_CHECKING:
    from devdan.bench.grid import Cell, GridFolder, GridPlan, run_cells
    from devdan.bench.grid_page import markdown_sections, read_rows, write_tables
    from devdan.bench.named_models import build
    from devdan.bench.pclass import PClass, RuleEvent
    from devdan.bench.pensemble import PENsemble, PENsemblePlus
else:
    __getattr__, __dir__ = lazy.exports(
        __name__,
        Cell="grid",
        GridFolder="grid",
        GridPlan="grid",
        PClass="pclass",
        PENsemble="pensemble",
        PENsemblePlus="pensemble",
        RuleEvent="pclass",
        build="named_models",
        markdown_sections="grid_page",
        read_rows="grid_page",
        run_cells="grid",
        write_tables="grid_page",
    )

__all__ = [
    "Cell",
    "GridFolder",
    "GridPlan",
    "PClass",
    "PENsemble",
    "PENsemblePlus",
    "RuleEvent",
    "build",
    "markdown_sections",
    "read_rows",
    "run_cells",
    "write_tables",
]
