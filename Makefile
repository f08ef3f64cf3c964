# `make serve` and `make test` do all set-up: a virtual environment of their own, exact versions.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Both names, because pips differ in which of them reaches what is needed to build.
PIP := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(BIN)/pip --disable-pip-version-check --quiet

.PHONY: serve test check docs proto clean pins

serve: $(READY)
	$(BIN)/contextd serve

test: $(READY) check
	$(BIN)/pytest -n 2 -m "not node" --cov --cov-report= --cov-fail-under=0
	$(BIN)/python tests/coverage_gate.py

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)
	$(BIN)/contextd docs docs

proto: $(READY)
	$(BIN)/python -m grpc_tools.protoc -I src --python_out=src --pyi_out=src --grpc_python_out=src \
		src/contextd/edge/grpc/contextd_v1.proto src/contextd/plugin_kit/wire/plugin_v1.proto

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --editable ".[dev,qdrant,train]"
	touch $(READY)

pins: $(READY)
	$(BIN)/pip freeze --exclude-editable | LC_ALL=C sort > constraints.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .coverage*
