# One environment for everything: `make demo`, `make test`, `make check`, `make portable`.
PYTHON ?= python3
WORKERS ?= 2
BIN := .venv/bin

.PHONY: demo test check portable perf docs results lint types clean

demo: .venv/stamp
	$(BIN)/robo-rl demo

# One thread a worker: two processes of one thread are quicker than one process of two. Files as
# tests/conftest.py orders them: by number of tests, the longest of few tests would come last and run
# alone.
test: .venv/stamp lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

check: export LEROBOT_PYTHON = $(CURDIR)/.lerobot/bin/python
check: .venv/stamp .lerobot/stamp lint types
	$(BIN)/python -m pytest -m 'slow or not slow' --faults=docs/faults.md

# The tests of training under other CPU settings, thread counts and seeds; long.
portable: .venv/stamp
	$(BIN)/python tests/portable.py --workers $(WORKERS) --report docs/maintainers/portable.md

# Speed beside the last tag, or beside AGAINST=COMMIT, in pairs; fails where it is 10 % slower.
perf: .venv/stamp
	$(BIN)/python -m benchmarks.perf --against "$(AGAINST)"

# The site in site/, without a network, its reference from parsers and docstrings; a warning (a dead link, a page that no menu has) fails it.
docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The tables of docs/results/tables, from the journals in docs/data.
results: .venv/stamp
	$(BIN)/python -m benchmarks.pages

lint: .venv/stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The type checker over what pyproject.toml names; minutes, so it is no part of `make test`.
types: .venv/stamp
	$(BIN)/basedpyright --pythonpath $(BIN)/python

# The stamp is written last: an interrupted install is done again.
.venv/stamp: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"robo-rl needs Python 3.11 or newer, found {sys.version.split()[0]}; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --disable-pip-version-check -q -c constraints.txt -e '.[train,so101,ur,koch,franka,dev]'
	@touch $@

.venv/docs: .venv/stamp
	$(BIN)/pip install --disable-pip-version-check -q -c constraints.txt -e '.[docs]'
	@touch $@

# LeRobot wants an older torch than ours: what reads our data sets has an environment of its own.
.lerobot/stamp:
	$(PYTHON) -m venv .lerobot
	.lerobot/bin/pip install --disable-pip-version-check -q 'lerobot==0.4.4'
	@touch $@

clean:
	rm -rf .venv .lerobot
