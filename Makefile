# Everything runs in .venv, which the first target makes. Windows: see the README for the same commands without make.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PROMPTFOO := evaluation/promptfoo

.DEFAULT_GOAL := help
.PHONY: help demo test check prose promptfoo fuzz figures statistics readings lab bench peers clean class grade

help: ## Show this help
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1	/' | expand -t 18

demo: .venv/installed ## Run BM25 and the three levels on the handbook, without a key
	@$(BIN)/rag run --dataset handbook

test: check ## Check everything and run all tests
	@$(BIN)/python -m pytest -n 3 --dist worksteal

check: .venv/installed-dev ## Lint, format and types
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

prose: .venv-prose/installed ## Check spelling and Markdown form of the corpus and the READMEs
	@.venv-prose/bin/codespell -L nd --skip "*/readings" README.md data evaluation/*.json rag
	@.venv-prose/bin/mdformat --check --wrap keep data/handbook

promptfoo: .venv/installed-dev $(PROMPTFOO)/node_modules/.package-lock.json ## Install promptfoo and test with it
	@$(BIN)/python -m pytest tests/promptfoo/test_promptfoo_run.py

fuzz: .venv/installed-dev ## Feed 10,000 damaged files to every loader
	@RAG_FUZZ=10000 $(BIN)/python -m pytest tests/test_damaged_files.py

figures: .venv/installed-dev ## Make every committed output again: pages, pictures, notebooks
	@$(BIN)/python tests/test_readme.py
	@$(BIN)/python tests/test_notebooks.py

statistics: .venv/installed-dev ## Simulate coverage, type I errors, decisions and power; keep the tables
	@$(BIN)/python benchmarks/statistics.py --write

readings: .venv/installed-dev ## Write the prompts whose recorded readings are missing into exchange/
	@$(BIN)/rag readings --write exchange

lab: .venv/installed ## Open the notebooks
	@$(BIN)/jupyter lab notebooks

class: .venv/installed ## Write class.zip for students: no solutions, no outputs
	@$(BIN)/python notebooks/handout.py class.zip

grade: .venv/installed-dev ## Mark handed-in notebooks: make grade FILE="in/*.ipynb"
	@$(BIN)/python notebooks/grade.py $(FILE) --csv marks.csv

bench: .venv/installed ## Time searches against the bare matrix product
	@env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python benchmarks/search.py

peers: .venv-peers/installed ## Compare the judged metrics with ragas (installs it apart: 800 MB)
	@PYTHONPATH=. .venv-peers/bin/python -m pytest tests/judged/test_peers.py \
		tests/judged/test_records.py::test_a_hugging_face_data_set_comes_and_goes
	@PYTHONPATH=. .venv-peers/bin/python benchmarks/peers/ragas_metrics.py

clean: ## Remove the environment and all caches
	rm -rf .venv .venv-prose .venv-peers $(PROMPTFOO)/node_modules $(PROMPTFOO)/.promptfoo
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	@test -n "$(PYTHON)" && "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed: install it, or name one with make PYTHON=/path/to/python"; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "Python cannot make environments here: apt install python3-venv (Debian, Ubuntu), then make again"; exit 1; }
	@"$(PYTHON)" -m venv .venv

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

.venv-prose/installed: | .venv/bin/python
	@.venv/bin/python -m venv .venv-prose
	@.venv-prose/bin/python -m pip install --quiet --disable-pip-version-check codespell==2.4.3 \
		mdformat==0.7.22 mdformat-gfm==1.0.0 mdformat-dollarmath==0.0.5
	@touch $@

.venv-peers/installed: | .venv/bin/python
	@.venv/bin/python -m venv .venv-peers
	@.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check pytest hypothesis \
		ragas==0.4.3 'langchain-community<0.4.2'
	@touch $@

.venv/installed-dev: .venv/installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(PROMPTFOO)/node_modules/.package-lock.json: $(PROMPTFOO)/package.json
	@command -v npm > /dev/null || { echo "npm is needed: install Node.js, then make again"; exit 1; }
	@echo "installing promptfoo (a minute, 1.5 GB)"
	@cd $(PROMPTFOO) && npm install --no-package-lock --no-audit --no-fund --loglevel=error
	@touch $@
