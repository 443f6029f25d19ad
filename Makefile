# Two commands do everything on a fresh machine: `make reproduce` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# What Python and pytest have read once is kept, whatever the shell says: all workers, and the hundreds of programs that the
# tests start, would read it again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup reproduce test quick lint tests browser docs chaos clean

# The environment for users; its stamp is older than pyproject.toml only when that has changed.
$(VENV)/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plots]'
	touch $@

$(VENV)/installed-reproduce: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plots,deep,video,explorer]'
	touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plots,mo,atari,deep,video,explorer,ray,search,tensorboard,parquet,test,docs]'
	touch $@

# Everything that the README shows, but for what it names an extra for.
setup: $(VENV)/installed-reproduce

# Stopped at any moment, it goes on where it was.
reproduce: $(VENV)/installed-reproduce
	$(BIN)/multiadvisor reproduce --out report

lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The tests of the explorer page and of the site need Chromium: the one that is there, or Debian's. Without one they are
# skipped, and say so; where CI is set that is a failure.
browser:
	@for name in "$$CHROMIUM" chromium chromium-browser google-chrome google-chrome-stable; do \
		if [ -n "$$name" ] && command -v "$$name" > /dev/null; then exit 0; fi; done; \
	if command -v apt-get > /dev/null && [ "$$(id -u)" = 0 ]; then \
		echo "installing chromium for the tests of the explorer page and the site ..."; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
			chromium fonts-liberation > /dev/null && exit 0; fi; \
	echo "NO BROWSER: the explorer page and the site are not tested; apt-get install chromium, or set CHROMIUM" >&2; \
	[ -z "$$CI" ]

CORES := $(shell getconf _NPROCESSORS_ONLN)
# One worker more than there are cores: browsers, clusters and processes that were killed are waited for.
WORKERS ?= $(shell echo $$(($(CORES) + 1)))

# Types are checked on one core while the tests start on the others.
test:
	$(MAKE) --no-print-directory -j 2 lint tests

tests: $(VENV)/installed-test browser
	$(BIN)/pytest -n $(WORKERS) --dist load

# What a change breaks most often, in a minute: everything but the tests marked slow. `make test` is complete.
quick: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/pytest -n $(CORES) --dist load -m 'not slow'

$(VENV)/installed-docs: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

# The site, in site/: open site/index.html. A broken link or a missing reference ends it (never with --quiet: then MkDocs
# counts no warnings, and --strict lets everything pass).
docs: $(VENV)/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "the site is in site/: $(PYTHON) -m http.server --bind 127.0.0.1 --directory site 8000, as search needs a server"

# Kills, flipped bits, mutated inputs and forged checkpoints in full; some five minutes. `make chaos SEED=7` repeats one.
chaos: $(VENV)/installed-test
	PYTHONPATH=tests $(BIN)/python tests/runs/chaos.py $(SEED)

clean:
	rm -rf $(VENV) build dist site report .pytest_cache .mypy_cache .ruff_cache .hypothesis
