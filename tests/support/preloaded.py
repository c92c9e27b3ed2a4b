"""What a process of :mod:`processes` begins with: everything is loaded, and the kernel compiled."""

import devdan.bench.grid
import devdan.cli.display
import devdan.loggers
import devdan.report
import devdan.runs.runjob
import devdan.service.server  # noqa: F401
from devdan import DEVDAN
from devdan.fleet.fleet import compile_fleet
from devdan.model.compilation import compile_kernel

compile_kernel(DEVDAN())
compile_fleet()
