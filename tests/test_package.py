"""The package as a whole: imports point one way, importing compiles nothing, processes agree."""

import ast
import hashlib
import importlib
import re
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from interpreters import LEARN, python
from numba import config

import devdan
from devdan.streams import sea

SOURCE = Path(devdan.__file__).parent
# The rooms of the house: a module may import from rooms before its own, never from one after it.
ROOMS = [
    {"atomic", "arrays", "label_join", "lazy"},
    {"kernel", "encoding"},
    {"histories"},
    {"model"},
    {"fleet", "streams"},
    {"evaluation"},
    {"", "river", "capymoa", "client", "runs"},
    {"report", "loggers", "apply"},
    {"plot", "service"},
    {"bench", "spark"},
    {"cli"},
    {"__main__"},
]
PLAIN = {"", "__main__", "atomic", "arrays", "label_join", "lazy"}  # no rooms: what all of them may use, and doors


def imports(path):
    """The package's modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "devdan":
            package = node.module.split(".")[1:]
            for alias in node.names:
                module = SOURCE.joinpath(*package, alias.name)
                is_module = module.with_suffix(".py").exists() or module.is_dir()
                yield ".".join([*package, alias.name] if is_module else package)
        elif isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[2] for alias in node.names if alias.name.split(".")[0] == "devdan")


def name_of(path):
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix("__init__").rstrip(".")


MODULES = {name_of(path): path for path in SOURCE.rglob("*.py")}


@cache
def imports_of(name):
    return set(imports(MODULES[name]))


def room_of(module):
    return module.split(".")[0]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_point_one_way_between_rooms(name):
    place = {room: rank for rank, rooms in enumerate(ROOMS) for room in rooms}
    assert room_of(name) in place, f"{name} is in a room that has no place in the order yet"
    for other in imports_of(name):
        assert room_of(other) == room_of(name) or place[room_of(other)] < place[room_of(name)], (
            f"{name} imports {other}"
        )


def test_imports_never_lead_back():
    """Also within a room: a module never imports one that imports it, however far around."""
    sorted_ = TopologicalSorter({name: imports_of(name) for name in MODULES})
    sorted_.prepare()  # a CycleError names the modules


# Adapters are called as what they adapt, in the words of the library that they are for.
SAME_CLASSES = {"DEVDANClassifier", "Histories"}


def test_a_name_of_a_class_says_which_class_it_is():
    found = Counter(
        node.name
        for path in MODULES.values()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, n in found.items() if n > 1} == SAME_CLASSES


def test_a_name_of_a_module_says_which_module_it_is():
    found = Counter(path.stem for path in MODULES.values())
    assert {name for name, n in found.items() if n > 1} == {"__init__"}


def test_no_test_imports_a_test():
    """What several tests share is in tests/support."""
    folder = Path(__file__).parent
    tests = {"conftest", *(path.stem for path in folder.rglob("test_*.py"))}
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            imported = set()
            if isinstance(node, ast.ImportFrom):
                imported = {*(node.module or "").split("."), *(alias.name for alias in node.names)}
            elif isinstance(node, ast.Import):
                imported = {part for alias in node.names for part in alias.name.split(".")}
            assert not imported & tests, f"{path.relative_to(folder)} imports {imported & tests}"


def test_each_test_file_has_a_name_of_its_own():
    """Pytest imports them by their names, and refuses the second of a name in whichever process meets both."""
    names = Counter(path.stem for path in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_the_same_seed_gives_the_same_bits_in_another_process():
    model = devdan.DEVDAN(random_state=7)
    for X, y in sea(3000, seed=2):
        model.partial_fit(X, y)
    assert python(LEARN)[0].strip() == hashlib.sha256(model.mixture_.networks[0].tobytes()).hexdigest()


@pytest.mark.parametrize("package", ["devdan", "devdan.bench", "devdan.evaluation", "devdan.streams"])
def test_names_that_are_loaded_when_used_are_all_there(package):
    module = importlib.import_module(package)
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert getattr(module, name).__name__ == name
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018
    with pytest.raises(ImportError, match="nothing"):
        exec(f"from {package} import nothing")


def test_help_version_and_completion_load_nothing_that_learns_or_reads():
    """What loads NumPy or more takes seconds of a processor, each time somebody presses Tab."""
    code = """
import os, sys
from devdan.cli import app

def ends(*words):
    try:
        app(words, prog_name="devdan")
    except SystemExit as end:
        assert not end.code, (words, end)

ends("--version")
ends("--help")
names = [command.name or command.callback.__name__ for command in app.registered_commands]
assert "run" in names and len(names) >= 5
for name in names:
    ends(name, "--help")
for line in ("devdan ", "devdan run we", "devdan run --", "devdan run sea --model riv", "devdan fetch s", "devdan run "
             "sea --labels d", "devdan run sea --log m", "devdan predict m pyp", "devdan show s", "devdan learn m "):
    os.environ |= {"_DEVDAN_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    print("completed:", end=" ")
    ends()
loaded = {module.partition(".")[0] for module in sys.modules}
heavy = {"numpy", "scipy", "sklearn", "numba", "pyarrow", "pandas", "joblib", "httpx", "jinja2", "river",
         "starlette", "msgspec", "uvicorn"}
assert not loaded & heavy, loaded & heavy
"""
    said, _ = python(code, COLUMNS="100")
    assert f"devdan {devdan.__version__}" in said
    for word in ("run", "weather", "--labels", "river-arf", "susy", "delay:1000", "mlflow"):
        assert re.search(f"^(completed: )?{word}$", said, re.MULTILINE), word


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled without the JIT")
def test_importing_compiles_nothing():
    code = """
from numba.core import event
with event.install_recorder("numba:compile") as recorder:
    import devdan.fleet.fleet, devdan.model.ensemble, devdan.model.online, devdan.bench.pensemble
assert not recorder.buffer
"""
    python(code)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled without the JIT")
@pytest.mark.slow
def test_the_first_compilation_is_announced_once_and_kept_for_later_processes(tmp_path):
    first = python(LEARN, NUMBA_CACHE_DIR=str(tmp_path))
    second = python(LEARN, NUMBA_CACHE_DIR=str(tmp_path))
    assert first[1].count("devdan is compiling its kernel") == 1
    assert second == (first[0], "")


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled without the JIT")
@pytest.mark.slow
def test_without_any_folder_for_the_cache_it_still_works():
    code = "from numba.core import caching\ncaching.CacheImpl._locator_classes = []\n" + LEARN
    assert python(code)[0] == python(LEARN)[0]


def test_what_an_optional_extra_is_for_says_how_to_get_it():
    said, _ = python(
        """
import sys
for name in ("river", "capymoa", "onnx", "matplotlib.pyplot", "pyspark"):
    sys.modules[name] = None
from devdan import DEVDAN
from devdan.plot import StructureDisplay
model = DEVDAN().fit([[1.0], [2.0]], [0, 1])
plot = StructureDisplay(samples=[1], n_hidden=[1]).plot
modules = [lambda name=name: __import__(f"devdan.{name}") for name in ("river", "capymoa", "spark")]
for use in (*modules, model.to_onnx, plot):
    try:
        use()
    except ModuleNotFoundError as error:
        print(error)
"""
    )
    for extra in ("river", "capymoa", "onnx", "plot", "spark"):
        assert f"pip install 'devdan[{extra}]'" in said


def test_contributing_names_all_rooms_in_the_order_of_their_imports():
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text().partition("## Rooms")[2]
    rows = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    place = {room: rank for rank, rooms in enumerate(ROOMS) for room in rooms}
    ranks = [[place[room] for room in re.findall(r"`(\w+)`", row)] for row in rows]
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(set().union(*ROOMS) - PLAIN)
    assert all(max(higher) <= min(lower) for higher, lower in pairwise(ranks))
    beside = text.partition("are beside them:")[2].partition(".")[0]
    assert set(re.findall(r"`(\w+)`", beside)) == PLAIN - {"", "__main__"}


def test_the_picture_of_the_architecture_has_all_rooms():
    picture = (SOURCE.parents[1] / "docs" / "architecture.svg").read_text()
    drawn = re.findall(r'<text class="name"[^>]*>(\w+)(?:/|\.py)<', picture)
    assert sorted(drawn) == sorted(set().union(*ROOMS) - PLAIN)
    heights = {room: int(re.search(rf' y="(\d+)">{room}(?:/|\.py)<', picture)[1]) for room in drawn}
    for higher, lower in pairwise([rooms - PLAIN for rooms in ROOMS if rooms - PLAIN][::-1]):
        assert max(heights[room] for room in higher) < min(heights[room] for room in lower)


def test_workflows_call_commands_that_exist():
    """Nobody can run them here, so at least what they call is there."""
    root = SOURCE.parents[1]
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), re.MULTILINE))
    workflows = sorted((root / ".github/workflows").glob("*.yml"))
    called = set()
    for path in workflows:
        jobs = yaml.safe_load(path.read_text())["jobs"]
        assert all(own.get("needs", name) in jobs for name, own in jobs.items())
        commands = [step["run"] for own in jobs.values() for step in own["steps"] if "run" in step]
        called |= {word for command in commands for word in re.findall(r"\bmake ([a-z-]+)", command)}
        assert all((root / word).is_file() for command in commands for word in re.findall(r"\.ci/[a-z-]+", command))
    assert {"docs", "dist-check", "test-versions"} <= called <= targets
