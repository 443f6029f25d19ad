# Two commands do everything on a fresh machine: `make reproduce` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: reproduce test lint chaos clean

# The environment for users; its stamp is older than pyproject.toml only when that has changed.
$(VENV)/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plots]'
	touch $@

$(VENV)/installed-reproduce: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plots,deep,video]'
	touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plots,mo,deep,video,ray,search,tensorboard,parquet,test]'
	touch $@

# Stopped at any moment, it goes on where it was.
reproduce: $(VENV)/installed-reproduce
	$(BIN)/multiadvisor reproduce --out report

lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest -n auto

# Kills, mutated inputs and flipped bits in full; minutes. `make chaos SEED=7` repeats one.
chaos: $(VENV)/installed-test
	$(BIN)/python tests/runs/chaos.py $(SEED)

clean:
	rm -rf $(VENV) build dist report .pytest_cache .mypy_cache .ruff_cache .hypothesis
