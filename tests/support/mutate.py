"""Which mistakes in the kernel would no test notice? Make each, and see whether a test fails: ``make mutate``.

A mutant is a chapter of the kernel with one change: a constant that is off, a comparison that is strict or no longer
is, a condition the other way round, a term that is gone. They are found in the syntax tree, whatever the kernel looks
like. The tests run without the JIT, on a copy of the package. A mutant that no test can kill is named in
``EQUIVALENT``, with the reason; other survivors are reported, with the line, and make the exit code 1.

    python tests/support/mutate.py                  all of them: about an hour on two cores
    python tests/support/mutate.py HORIZON watch:   those whose description contains one of the texts
    python tests/support/mutate.py --list           what there would be
"""

import argparse
import ast
import copy
import importlib
import os
import re
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
KERNEL = Path("src/devdan/kernel")
NOT_COMPILED = ("__init__", "jit", "memory", "state")  # files of the kernel that are not mutated

# Those that kill most come first.
TESTS = (*("kernel", "replay", "horizons", "inputs", "modelfile", "classifier", "online", "ensemble", "fleet"),)
# Parts of the names of tests that are left out.
SLOW = (  # without the JIT
    *("very_many", "told_apart", "runs_out"),
    *("threads", "each_member_learns", "mixes_its_members", "better_than", "suits_the_stream", "find_no_room"),
    *("goes_on_bit_for_bit", "make_an_ensemble", "what_it_shows", "bad_option_says", "interrupted"),
    *("makes_more_of_few", "neither_evolves", "tells_no_drift"),
    *("as_if_it_were_alone", "do_no_harm", "fit_each_other"),
)
UNFIT = ("was_never_there", "clipped_and_warned")  # without the JIT, where NumPy warns of infinity less infinity


def file_of(name: str) -> str:
    """Where tests of this name are."""
    return str(next((ROOT / "tests").rglob(f"test_{name}.py")).relative_to(ROOT))


PATIENCE = 120  # seconds, after which a test is taken for endless

FLIPPED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
NEGATED = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
OTHER = {ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
FACTORS = (0.9, 1.1, 1e6)

AHEAD = "only what is fetched ahead, which changes no result"

# Why no test can tell, for a constant (by its name) or for a single mutant (by its description).
EQUIVALENT = {
    "look_ahead: far < len(slots) and slots[far] >= 0 → not (far < len(slots) and slots[far] >= 0)": AHEAD,
    "look_ahead: far < len(slots) and slots[far] >= 0 → far < len(slots)": AHEAD,
    "look_ahead: far < len(slots) → far >= len(slots)": AHEAD,
    "look_ahead: slots[far] >= 0 → slots[far] > 0": AHEAD,
    "look_ahead: slots[far] >= 0 → slots[far] < 0": AHEAD,
    "look_ahead: near < len(slots) and slots[near] >= 0 → not (near < len(slots) and slots[near] >= 0)": AHEAD,
    "look_ahead: near < len(slots) and slots[near] >= 0 → near < len(slots)": AHEAD,
    "look_ahead: near < len(slots) → near >= len(slots)": AHEAD,
    "look_ahead: slots[near] >= 0 → slots[near] > 0": AHEAD,
    "look_ahead: slots[near] >= 0 → slots[near] < 0": AHEAD,
    "corrupt: net.masking > 0.0 and n > 1 → net.masking > 0.0": "of one feature, none is masked all the same",
    "corrupt: n > 1 → n >= 1": "of one feature, none is masked all the same",
    "learn_evolving: net.n_hidden + 2 > net.max_hidden → net.n_hidden + 2 >= net.max_hidden": (
        "only asks for room earlier"
    ),
    "learn_evolving: net.start > net.max_hidden → net.start >= net.max_hidden": "only asks for room earlier",
    "TOLERANCE, WIDEST_SCOPE: 1024.0 → 921.6": "the scope doubles from 1 on, so that it ends at 1024 all the same",
    "exponential: min(max(a, -36.0), 36.0) → max(a, -36.0)": "1 / (1 + e^36) is 2e-16, and it only gets smaller",
    "evolve: not grows and net.prunes == 1.0 and reaches(monitors[VARIANCE], most_varied) → net.prunes == 1.0 and "
    "reaches(monitors[VARIANCE], most_varied)": "where it grows, nothing asks whether there are too many units",
    "learn_scaling: value[j] < low[j] → value[j] <= low[j]": "the same value again",
    "learn_scaling: value[j] > high[j] → value[j] >= high[j]": "the same value again",
    "update_losses: net.averaging > 0.0 and weight_of(net, BY_AVERAGES) < DOUBT → "
    "weight_of(net, BY_AVERAGES) < DOUBT": ("without averages, their loss is unread"),
    "update_losses: net.averaging > 0.0 → net.averaging >= 0.0": "without averages, their loss is unread",
    "update_losses: weight_of(net, BY_AVERAGES) < DOUBT → weight_of(net, BY_AVERAGES) <= DOUBT": (
        "a weight that is exactly at the limit"
    ),
    "predictor_weight: behind > 0.0 → behind >= 0.0": "both weigh the same",
    "transform: min(net.n_hidden, out.shape[1]) → net.n_hidden": "its callers have a column for each unit",
    "transform: min(net.n_hidden, out.shape[1]) → out.shape[1]": "its callers have a column for each unit",
    "NEGLIGIBLE: 1e-12 → 9e-13": "changes no prediction by as much as 1e-12",
    "NEGLIGIBLE: 1e-12 → 1.1000000000000002e-12": "changes no prediction by as much as 1e-12",
    "add_predictions: part > NEGLIGIBLE → part >= NEGLIGIBLE": "changes no prediction by as much as 1e-12",
    "grow: squared_error(z, x, weight, length) <= asked → squared_error(z, x, weight, length) < asked": (
        "an error that is exactly at the limit"
    ),
    "rise: change > SURE → change >= SURE": "a mean of floats that is exactly at the limit",
    "rise: change < -SURE → change <= -SURE": "a mean of floats that is exactly at the limit",
}


class Mutant(NamedTuple):
    file: Path
    line: int
    where: str  # the function or the constant
    change: str
    source: str
    first: str  # the tests that are likely to kill it

    @property
    def description(self) -> str:
        return f"{self.where}: {self.change}"

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


# --- Mutants -----------------------------------------------------------------------------------------------------


def chapters() -> dict[Path, str]:
    """The sources of the kernel that are mutated, by their place in the repository."""
    files = sorted((ROOT / KERNEL).glob("*.py"))
    return {file.relative_to(ROOT): file.read_text() for file in files if file.stem not in NOT_COMPILED}


def mutants(sources: dict[Path, str]) -> list[Mutant]:
    """All mutants of these files, in the order of their lines."""
    trees = {file: ast.parse(source) for file, source in sources.items()}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    indices = {name.id for node in nodes if isinstance(node, ast.Subscript) for name in names(node.slice)}
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    in_use = {name.id for node in functions if node.decorator_list for name in names(node)}  # by compiled code
    return [mutant for file, tree in trees.items() for mutant in mutants_of(file, tree, indices, in_use)]


def mutants_of(file: Path, tree: ast.Module, indices: set[str], in_use: set[str]) -> list[Mutant]:
    """All mutants of a file, in the order of its lines; of those with the same source, one."""
    known, found, lines = set(), [], [ast.unparse(statement) for statement in tree.body]
    for k, statement in enumerate(tree.body):
        if isinstance(statement, ast.FunctionDef):
            where, changes = statement.name, changes_of_conditions(statement)
            first = "kernel" if statement.decorator_list else "modelfile"
            if {argument.arg for argument in statement.args.args} & {"at", "table", "place"}:
                first = "fleet"
        else:
            where, changes = constant_of(statement), changes_of_constants(statement, indices)
            first = "horizons" if in_use & set(where.split(", ")) else "modelfile"
        for node, changed in changes:
            mutated = "\n".join([*lines[:k], ast.unparse(with_replaced(statement, node, changed)), *lines[k + 1 :]])
            if mutated not in known:
                known.add(mutated)
                change = f"{ast.unparse(node)} → {ast.unparse(changed)}"
                found.append(Mutant(file, node.lineno, where, change, mutated, file_of(first)))
    return sorted(found, key=lambda mutant: mutant.line)


def names(node: ast.AST) -> Iterator[ast.Name]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Name))


def constant_of(statement: ast.stmt) -> str:
    """The name of what a statement of the module defines, if it is a constant, or several."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    defined = [name.id for target in targets if target is not None for name in names(target)]
    return ", ".join(defined) if all(name.isupper() and name[0] != "_" for name in defined) else ""


def changes_of_constants(statement: ast.stmt, indices: set[str]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each number of a constant, and what it may be instead; indices, and names for 0, 1, 2, are no quantities."""
    defined = constant_of(statement)
    value = getattr(statement, "value", None)
    if not defined or value is None or any(isinstance(node, ast.Call) for node in ast.walk(value)):
        return
    numbers = [node for node in ast.walk(value) if isinstance(node, ast.Constant) and type(node.value) in (int, float)]
    if len(numbers) > 1 and [node.value for node in numbers] == list(range(len(numbers))):
        return
    for node in numbers:
        if isinstance(node.value, float):
            for factor in FACTORS:
                yield node, ast.copy_location(ast.Constant(node.value * factor), node)
        elif not indices & set(defined.split(", ")):
            for step in (-1, 1):
                yield node, ast.copy_location(ast.Constant(node.value + step), node)


def changes_of_conditions(function: ast.FunctionDef) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each comparison, condition and limit of a function, and what it may be instead."""
    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            for table in (FLIPPED, NEGATED):
                if type(node.ops[0]) in table:
                    yield node, ast.Compare(node.left, [table[type(node.ops[0])]()], node.comparators)
        elif isinstance(node, ast.BoolOp):
            yield node, ast.BoolOp(OTHER[type(node.op)](), node.values)
            for k in range(len(node.values)):
                rest = node.values[:k] + node.values[k + 1 :]
                yield node, rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        elif isinstance(node, ast.BinOp) and type(node.op) in OTHER and isinstance(node.left, ast.Compare):
            yield node, ast.BinOp(node.left, OTHER[type(node.op)](), node.right)
            yield from ((node, term) for term in (node.left, node.right))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("min", "max"):
            yield from ((node, term) for term in node.args)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, node.operand
        if isinstance(node, (ast.If, ast.While, ast.IfExp)) and not isinstance(node.test, (ast.Constant, ast.Compare)):
            yield node.test, ast.UnaryOp(ast.Not(), node.test)


def with_replaced(tree: ast.AST, node: ast.AST, changed: ast.AST) -> ast.AST:
    """A copy of a tree in which one node is another."""
    if tree is node:
        return changed
    result = copy.copy(tree)
    for field, value in ast.iter_fields(tree):
        if isinstance(value, list):
            parts = [with_replaced(part, node, changed) if isinstance(part, ast.AST) else part for part in value]
            setattr(result, field, parts)
        elif isinstance(value, ast.AST):
            setattr(result, field, with_replaced(value, node, changed))
    return result


# --- Trying them -------------------------------------------------------------------------------------------------


class Bench:
    """A copy of the package and of its tests, in which mutants are tried one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for part in ("src", "tests"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        for part in ("pyproject.toml", "conftest.py"):
            shutil.copy(ROOT / part, folder)
        self.changed: dict[Path, str] = {}  # what was in the files that are not as they were

    def write(self, file: Path, source: str) -> None:
        (self.folder / file).write_text(source)
        for compiled in (self.folder / file).parent.glob(f"__pycache__/{file.stem}.*"):
            compiled.unlink()  # Python would take one of the same second and size for the new one

    def start(self, mutant: Mutant, likely: list[str]) -> int:
        """Test this mutant up to the first failure, with the tests likely to fail before all others.

        The process is a fork of this one, which has imported what takes seconds and knows nothing of the package yet.
        """
        for file, source in self.changed.items():
            self.write(file, source)
        self.changed = {mutant.file: (self.folder / mutant.file).read_text()}
        self.write(mutant.file, mutant.source)
        child = os.fork()
        if child > 0:
            return child
        code = 1
        try:
            os.chdir(self.folder)
            sys.path.insert(0, str(self.folder / "src"))
            with open("output", "w") as output:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
            endless = ("-o", f"faulthandler_timeout={PATIENCE}", "-o", "faulthandler_exit_on_timeout=true")
            chosen = ("-k", " and ".join(f"not {name}" for name in SLOW + UNFIT))
            rest = [file for name in TESTS if (file := file_of(name)) != mutant.first]
            for tests in filter(None, (likely, [mutant.first], rest)):  # to collect all takes longer than to run one
                code = pytest.main(["-xq", "--tb=no", "-p", "no:cacheprovider", *endless, *chosen, *tests])
                if code != 0:
                    break
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def failures(self, code: int) -> list[str]:
        """The tests that failed, or that came to no end; whatever else went wrong is no evidence, and ends it all."""
        output = (self.folder / "output").read_text()
        failed = re.findall(r"^(?:FAILED|ERROR) (tests/[\w./]+(?:::\w+(?:\[.*?\](?= - |$))?)?)", output, re.MULTILINE)
        if code != 0 and not failed and "Timeout (" not in output:
            sys.exit(f"the tests could not be run:\n{output}")
        return failed or (["a test without end"] if code else [])


def killers(tried: list[Mutant], jobs: int) -> Iterator[tuple[Mutant, str | None]]:
    """Each mutant with the test that killed it, if one did, in the order in which that is known."""
    likely: dict[str, list[str]] = {}  # what killed a neighbour is likely to kill again
    file, source = next(iter(chapters().items()))
    none = Mutant(file, 0, "", "", source, "tests/kernel/test_kernel.py")
    with tempfile.TemporaryDirectory() as folder:
        free = [Bench(Path(folder) / str(k)) for k in range(jobs)]
        waiting, running = [*tried[::-1], none], {}
        try:
            while waiting or running:
                while waiting and free:
                    bench, mutant = free.pop(), waiting.pop()
                    child = bench.start(mutant, likely.get(mutant.where, []))
                    running[child] = bench, mutant
                child, code = os.waitpid(-1, 0)
                bench, mutant = running.pop(child)
                failed = bench.failures(code)
                free.append(bench)
                if failed and "::" in failed[0]:
                    others = [test for test in likely.get(mutant.where, []) if test != failed[0]]
                    likely[mutant.where] = [failed[0], *others][:3]
                if mutant is not none:
                    yield mutant, failed[0] if failed else None
                elif failed:
                    sys.exit(f"without any change a test fails: {failed[0]}")
        finally:  # also after Ctrl-C, or where it is ended from outside
            for child in running:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def import_what_takes_seconds() -> None:
    """All that the tests import but the package; only then it is known that there is no JIT."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    for name in ("joblib", "numba", "numpy.testing", "pandas", "sklearn.base"):
        importlib.import_module(name)
    if any(name.partition(".")[0] == "devdan" for name in sys.modules):
        sys.exit("the package must not be imported before it is mutated")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("only", nargs="*", help="texts, one of which the description of a mutant must contain")
    parser.add_argument("--jobs", type=int, default=1, help="how many are tried at a time")
    parser.add_argument("--list", action="store_true", help="show the mutants, and try none")
    chosen = parser.parse_args()
    every = mutants(chapters())
    wanted = [mutant for mutant in every if not chosen.only or any(text in mutant.description for text in chosen.only)]
    excused = {mutant for mutant in wanted if {mutant.where, mutant.description} & EQUIVALENT.keys()}
    tried = [mutant for mutant in wanted if mutant not in excused]
    if chosen.list:
        print(*(f"{mutant.place} {mutant.description}" for mutant in tried), sep="\n")
        return
    for key in EQUIVALENT.keys() - {key for mutant in every for key in (mutant.where, mutant.description)}:
        print(f"EQUIVALENT names what is not there any more: {key}")
    import_what_takes_seconds()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    os.nice(10)  # it takes long, and others may be at work
    survivors = []
    for mutant, killer in killers(tried, chosen.jobs):
        print(f"{mutant.place} {mutant.description}: {killer or 'SURVIVED'}", flush=True)
        survivors += [mutant] if killer is None else []
    print(f"{len(tried)} mutants, {len(tried) - len(survivors)} killed; {len(excused)} that no test can tell")
    print(*(f"survived: {mutant.place} {mutant.description}" for mutant in survivors), sep="\n")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
