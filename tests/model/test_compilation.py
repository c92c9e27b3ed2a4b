"""Compiling ahead of time: afterwards nothing is left to compile, whatever a model is asked for."""

import pytest
from commandline import devdan
from interpreters import LEARN, python
from numba import config

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled without the JIT")

USE_EVERYTHING = """
import warnings
import numpy as np
from numba.core import event
from numba.core.dispatcher import Dispatcher
from devdan import DEVDAN, DEVDANEnsemble, DEVDANFleet
from devdan.bench import PClass, PENsemble, PENsemblePlus, rule_kernel
from devdan.bench.named_models import build
from devdan.evaluation.measures import OF_RULES
from devdan.fleet.fleet import compile_fleet
from devdan import kernel
from devdan.model import compilation
from devdan.model.online import OnlineMixture
from devdan.model.scales import SCALES

models = [build(name) for name in OF_RULES]
jobs = compilation.jobs() + [compilation.Job("rules", lambda m=m: compilation.compile_kernel(m)) for m in models]
jobs.append(compilation.Job("fleet", compile_fleet))
list(compilation.compile_ahead(jobs))
for module in (kernel, rule_kernel):
    entries = [value for value in vars(module).values() if isinstance(value, Dispatcher) and value.stats.cache_path]
    assert len(entries) > 3
    for function in entries:
        assert function.signatures, f"{function} is not compiled"

random = np.random.default_rng(0)
X, y = random.random((300, 4)), random.integers(0, 3, 300)
fixed = X.copy()
fixed.flags.writeable = False
forms = [X, fixed, X.astype(np.float32), np.asfortranarray(X), X[::2], X[:, ::-1], X[:1], X.tolist()]
with event.install_recorder("numba:compile") as recorder:
    for model in (
        DEVDAN(n_hidden=20, interleave=True), DEVDAN(shuffle=False),
        DEVDAN.paper(scope="adaptive"), DEVDAN(rehearse=0), DEVDANEnsemble(n_jobs=1), DEVDANEnsemble(n_jobs=2),
        PClass(), PENsemble(), PENsemblePlus(),
    ):
        for form in forms:
            model.partial_fit(form, y[: len(form)])
            model.predict_proba(form)
        if hasattr(model, "observe"):
            model.observe(X).teach(X[:5], ["new"] * 5 if model.classes_.dtype.kind == "U" else y[:5]).score(X, y)
        if hasattr(model, "transform"):
            for form in forms:
                model.transform(form), model.reconstruct(form)
    for network in (OnlineMixture(grow=True), OnlineMixture(rehearse=0), OnlineMixture(SCALES)):
        network.begin(4, seed=1)
        for row, label in zip(X, y):
            network.observe(row[None])
            network.learn(row[None].copy(), int(label) % 2)
            network.predict(row[None], 2)
        network.learn_rows(X, y % 2)
    for fleet in (DEVDANFleet(n_jobs=1), DEVDANFleet(DEVDAN(rehearse=0, interleave=np.True_), prior=False, n_jobs=2)):
        for form in forms:
            fleet.partial_fit(np.arange(len(form)) % 7, form, y[: len(form)], sample_weight=np.ones(len(form)))
            fleet.predict(np.arange(len(form)) % 7, form)
        fleet.observe([1] * 300, X).teach([2], X[:1], [5]).summary()
late = {record.data["dispatcher"].py_func.__qualname__ for _, record in recorder.buffer}
assert not late, late
"""


def test_afterwards_nothing_is_left_to_compile():
    python(USE_EVERYTHING)


def test_it_says_where_the_cache_is_and_when_there_is_nothing_to_do(tmp_path):
    first = devdan("compile", folder=tmp_path)
    assert "networks: " in first.stderr
    second = devdan("compile", folder=tmp_path)
    assert second.stdout.startswith("Nothing to do: everything is compiled already, in /")
    assert second.stderr.count(": compiled already") == len(second.stderr.splitlines()) == 5


def test_without_any_folder_for_the_cache_it_says_what_to_do():
    code = """
from numba.core import caching
caching.CacheImpl._locator_classes = []
from devdan.cli import app
try:
    app(["compile"])
except SystemExit as end:
    print(end.code)
"""
    said = python(code)
    assert said[0].strip() == "2"
    assert said[1].startswith("devdan: there is no folder where compiled code can be kept: set NUMBA_CACHE_DIR to one")
    assert "NUMBA_DISABLE_JIT is set" in python(code, NUMBA_DISABLE_JIT="1")[1]


@pytest.mark.slow
def test_a_new_cache_is_filled_for_later_processes(tmp_path):
    code = "from devdan.cli import app; app(['compile', '--baselines'])"
    first = python(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert first[0].startswith("Compiled in ")
    assert str(tmp_path) in first[0]
    assert "devdan is compiling its kernel" not in first[1]  # it is what one has asked for
    assert python(code, NUMBA_CACHE_DIR=str(tmp_path))[0].startswith("Nothing to do")
    assert python(LEARN, NUMBA_CACHE_DIR=str(tmp_path))[1] == ""
