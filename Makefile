# On a fresh machine with Python and make: `make run` runs it on a stream, `make test` runs the tests.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DATA ?= $(or $(DEVDAN_DATA),../shared/data)
JOBS ?= 1
KILLS ?= 2
KAFKA_KILLS ?= 10
# A test that hangs ends the run after ten minutes and says where it hung.
PARALLEL := -n auto --dist loadscope --max-worker-restart 0 -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true
SCARCE := devdan,devdan-quick,devdan-ensemble,devdan-paper,devdan-no-generative,ae,dae,river-logreg,river-hat,sklearn-sgd,sklearn-mlp
CAPYMOA := capymoa-sgbt,capymoa-arf,capymoa-srp,capymoa-levbag
HELD_OUT := devdan,devdan-quick,devdan-paper,devdan-ensemble,river-logreg,river-hat,river-arf,river-srp,sklearn-sgd,sklearn-mlp
REAL := --suite real --limit 30000
PAPERS := devdan-paper,devdan-paper-constant,ae,dae,devdan-no-generative,devdan-no-growing,devdan-no-pruning,pensemble,pensemble+
OURS := devdan,devdan-quick,devdan-ensemble
TREES := river-logreg,river-hat,river-arf,river-srp
RIVALS := --streams sea,hyperplane,electricity,weather --models $(OURS),$(TREES)
SHORT := build/held-out/bananas.npz,build/held-out/segments.npz
LIMITED := --stop-after 20 --jobs $(JOBS)
WINDOWS := lightgbm-window-5000,logreg-window-5000
ONCE := --seeds 1 --models $(CAPYMOA),$(WINDOWS) $(LIMITED)  # forests of a hundred trees take too long for more

VERSIONS ?= 3.10 3.11 3.12 3.13 3.14

.PHONY: run test test-spark test-kafka test-versions fuzz fuzz-files mutate test-slow lint bench table picture docs dist-check lock locked clean

$(READY): pyproject.toml  ## what it takes to run
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "devdan needs Python 3.10 or newer: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(READY)-%: $(READY)  ## and one of the extras in pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	touch $@

run: $(READY)  ## a run on a built-in stream; prints where its report is
	$(BIN)/devdan run sea

test: $(READY)-docs  ## all but the slow tests, then those of what is compiled again as plain Python, for coverage
	$(BIN)/devdan compile --baselines
	$(BIN)/python -m pytest $(PARALLEL) -m 'not slow'
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q $(PARALLEL) -m 'uncompiled and not fuzz' tests/kernel tests/fleet tests/bench --cov --cov-fail-under=98

test-spark: $(READY)-test  ## queries on Spark, with kills: KILLS of the driver and as many of workers; needs Java 17
	DEVDAN_SPARK_KILLS=$(KILLS) $(BIN)/python -m pytest -m spark tests/spark

test-kafka: $(READY)-test  ## the service with a real Kafka broker from Maven Central: KAFKA_KILLS kills, of which every fifth is the broker's; needs Java 17 and Maven
	DEVDAN_KAFKA_KILLS=$(KAFKA_KILLS) $(BIN)/python -m pytest -n auto --dist loadscope -m kafka tests/service

test-versions: $(READY)-dist  ## the tests that need no extra on each Python that is here, with the lowest and the newest dependencies
	rm -rf dist
	$(BIN)/python -m build
	.ci/test-versions $(BIN) dist/*.whl $(VERSIONS)

fuzz: $(READY)-test  ## hostile input and files, a hundred times as many as in make test; without the JIT, bounds are checked
	$(BIN)/python -m pytest -n auto --dist worksteal -m fuzz tests --hypothesis-profile=fuzz
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n auto --dist worksteal -m 'fuzz and uncompiled' tests --hypothesis-profile=fuzz

fuzz-files: $(READY)-test  ## every field of every saved model changed, which takes more than an hour
	DEVDAN_FUZZ_EVERY_FIELD=1 $(BIN)/python -m pytest -n auto tests/test_tampering.py --hypothesis-profile=fuzz

mutate: $(READY)-test  ## makes small mistakes in the kernel, one at a time, and reports those that no test notices; JOBS=2 for two at a time
	$(BIN)/python tests/support/mutate.py --jobs $(JOBS)

test-slow: $(READY)-test  ## accuracy on the real streams that are available, and what compiles anew
	$(BIN)/python -m pytest -m 'slow and not spark and not kafka' -s

lint: $(READY)-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)-river  ## speed on one core; results go to benchmarks/results
	$(BIN)/python benchmarks/speed.py

table: $(READY)-bench  ## the missing results for docs/benchmarks.md: takes hours, mostly for the forests; a run that takes 20 minutes is stopped
	DEVDAN_DATA=$(DATA) $(BIN)/devdan table $(ONCE) --out benchmarks/results/peers
	DEVDAN_DATA=$(DATA) $(BIN)/devdan table --chunk 1 --streams electricity,weather $(ONCE) --out benchmarks/results/peers-single
	$(BIN)/devdan table --chunk 100 --streams $$($(BIN)/python benchmarks/unseen_streams.py held-out build/held-out) $(ONCE) --out benchmarks/results/peers-held-out
	$(BIN)/devdan table --chunk 1 --streams $(SHORT) $(ONCE) --out benchmarks/results/peers-held-out-single
	$(BIN)/devdan table --chunk 100 --streams $$($(BIN)/python benchmarks/unseen_streams.py other-kinds build/other-kinds) $(ONCE) --out benchmarks/results/peers-other-kinds
	DEVDAN_DATA=$(DATA) $(BIN)/devdan table $(REAL) --seeds 1 --models $(TREES),sklearn-sgd,sklearn-mlp,$(WINDOWS) $(LIMITED) --out benchmarks/results/peers-real
	DEVDAN_DATA=$(DATA) $(BIN)/devdan table $(REAL) --seeds 3 --models $(OURS),devdan-paper $(LIMITED) --out benchmarks/results/real
	DEVDAN_DATA=$(DATA) $(BIN)/devdan table --models $(PAPERS),$(OURS),$(TREES),sklearn-sgd,sklearn-mlp $(LIMITED) --out benchmarks/results/table
	DEVDAN_DATA=$(DATA) $(BIN)/devdan table --scarce --models $(SCARCE) $(LIMITED) --out benchmarks/results/scarce
	DEVDAN_DATA=$(DATA) $(BIN)/devdan table --chunk 1 --seeds 3 $(RIVALS) $(LIMITED) --out benchmarks/results/single
	DEVDAN_DATA=$(DATA) $(BIN)/devdan table --chunk 1000 --seeds 2 $(RIVALS) $(LIMITED) --out benchmarks/results/thousand
	$(BIN)/devdan table --chunk 100 --seeds 3 --streams $$($(BIN)/python benchmarks/unseen_streams.py held-out build/held-out) --models $(HELD_OUT) $(LIMITED) --out benchmarks/results/held-out
	$(BIN)/devdan table --chunk 1 --seeds 3 --streams $(SHORT) --models $(OURS),$(TREES) $(LIMITED) --out benchmarks/results/held-out-single
	$(BIN)/devdan table --chunk 100 --seeds 3 --streams $$($(BIN)/python benchmarks/unseen_streams.py other-kinds build/other-kinds) --models $(HELD_OUT) $(LIMITED) --out benchmarks/results/other-kinds
	$(BIN)/python benchmarks/page.py

picture: $(READY)-test  ## the figures in the README and in "How it works", and pictures of pages, from real runs
	$(BIN)/devdan run sea --out runs/picture --overwrite
	$(BIN)/devdan report runs/picture --picture docs/sea.svg --animated
	$(BIN)/python benchmarks/growing.py
	$(BIN)/python website/screens.py

docs: $(READY)-docs  ## the documentation as a site that works offline
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo 'Open build/site/index.html'

dist-check: $(READY)-dist  ## the wheel, built from the sdist, at work in an environment of its own, far from this folder
	rm -rf dist
	$(BIN)/python -m build
	.ci/try-wheel $(PYTHON) dist/*.whl

# Hatchling and editables build the package itself.
LOCK := printf 'hatchling\neditables\n' | $(BIN)/uv pip compile pyproject.toml - --universal --generate-hashes --no-annotate \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' --quiet --upgrade

lock: $(READY)-dist  ## the newest versions that pyproject.toml allows, with hashes, for the image and for the tests
	$(LOCK) --python-version 3.12 --extra serve --extra postgresql --extra kafka --output-file locks/image.txt
	$(LOCK) --python-version 3.11 --extra docs --extra lint --output-file locks/test.txt

locked:  ## an environment for the tests with just the versions of locks/test.txt, which are checked by their hashes
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement locks/test.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $(READY) $(addprefix $(READY)-,docs lint test)

clean:
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
