# `make serve` starts the app, `make test` passes the tests, `make figures` draws the papers' figures; each does its whole set-up.
PYTHON ?= python3
PORT ?= 5006
# What `make test` installs besides; without battery (PyTorch) the pipeline's tests are skipped:
# make clean test EXTRAS=figures,excel,test
EXTRAS ?= figures,excel,test,battery
# The version that trained the shipped battery; of it pip takes a build without CUDA where it knows one.
TORCH ?= torch==2.13.0
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed-$(notdir $(PYTHON))
EXTRAS_STAMP := $(VENV)/extras-$(EXTRAS)

.PHONY: serve test figures chromium clean

serve: $(STAMP)
	$(BIN)/python -m dashboards.server --port $(PORT)

figures: $(STAMP)
	$(BIN)/python -m dashboards.paper_figures figures

test: $(EXTRAS_STAMP) chromium
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@# One server for all browser tests; types are checked while the first of them wait for it.
	$(BIN)/mypy & types=$$!; $(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder; tests=$$?; \
	wait $$types && exit $$tests || { echo 'mypy found errors: see above'; exit 1; }

# One environment at a time: another PYTHON makes it anew. Python compiles what it imports; the rest is not worth the minute.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("leakviz needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check --editable '.[figures,excel,test]'
	touch $@

$(EXTRAS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]' $(if $(findstring battery,$(EXTRAS)),'$(TORCH)')
	touch $@

# Browser tests need a Chromium; Debian's is installed where there is none.
chromium:
	@if command -v chromium chromium-browser google-chrome >/dev/null 2>&1; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		apt-get update -qq && apt-get install -y -qq chromium >/dev/null; \
	else \
		echo 'The browser tests need Chromium. Install it, for instance with: sudo apt-get install chromium'; exit 1; \
	fi

clean:
	rm -rf $(VENV)
