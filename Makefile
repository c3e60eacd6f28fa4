# Everything that is built goes to .venv (Python) and target (Rust); `make clean` removes both.
# Needed beforehand: Python >= 3.11, a Rust toolchain, a C compiler as linker. Nothing else: the
# extension is a plain shared object that links only libc, so no patchelf and no other tool is used.

PYTHON ?= python3
UV_VERSION := 0.13.8
VENV := .venv
BIN := $(VENV)/bin
UV := VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv
OUT ?= out
MPICH := build/mpich
MPICH_VERSION := 5.0.2
CACHE := $(CURDIR)/build/cache

# PyO3 looks at this interpreter, so that cargo and maturin agree on one.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
BUILT := $(VENV)/.stamp-built
READY := $(VENV)/.stamp-ready

.PHONY: demo outputs build dev mpi test fuzz fuzz-readers test-mpi test-torch test-rust test-python browser \
  bench papers validate machines gpu check check-python check-rust check-fast docs hooks reference \
  format lock wheel release clean help

help:
	@echo "make demo       build, then answer: which all_reduce is fastest on this machine, and why?"
	@echo "                and what does communication cost a training step?"
	@echo "make build      everything into .venv: 2 to 5 minutes the first time"
	@echo "make dev        the Rust core alone, incremental and little optimised: seconds"
	@echo "make mpi        build, and the MPI library, compiled for Open MPI and MPICH"
	@echo "make wheel      source archive, wheels for x86-64, aarch64 and the papers, in OUT/dist"
	@echo "make release    changelog, notes, wheels, licences and checksums of a release; no tag, no push"
	@echo "make test       every check and every test"
	@echo "make fuzz       verbs on damaged files, for SECONDS=600; CASE=SEED:NUMBER repeats one"
	@echo "make fuzz-readers  each reader on COUNT=1000 damaged files; CASE=READER:SEED:NUMBER"
	@echo "make test-mpi   the long tests of the MPI library: hours"
	@echo "make test-torch tests of models of PyTorch, which it installs; TORCH=2.5.1 another version"
	@echo "make bench      benchmarks, as a table"
	@echo "make papers     every reproduced table and figure, beside the published values"
	@echo "make validate   predictions against trusted sources"
	@echo "make gpu        predictions of measured GPU clusters, from DATA=FOLDER"
	@echo "make machines   predictions of measured machines, from DATA=FOLDER; SAMPLE=1 without data"
	@echo "make check      formatting, lints and types only"
	@echo "make docs       build the documentation site in build/site/html; examples run, so minutes"
	@echo "make hooks      check before each commit and push (pre-commit)"
	@echo "make reference  write the reference pages from the code"
	@echo "make format     format Rust and Python"
	@echo "make clean      remove everything that was built"

# --- what is built -------------------------------------------------------------------------------

$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "tutti needs Python >= 3.11; name one: make PYTHON=python3.12 ..." >&2; exit 2; }
	@command -v cargo >/dev/null \
	  || { echo "tutti needs a Rust toolchain: cargo is not on PATH" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || .ci/install python3-venv "Debian's Python has no venv of its own"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

# The versions of requirements.txt, exactly; what is not in it is removed. All is compiled here and
# now: where Python writes no bytecode (PYTHONDONTWRITEBYTECODE), each start would do it again.
$(READY): requirements.txt | $(BIN)/uv
	@echo "installing what requirements.txt names into $(VENV)"
	$(UV) pip install --quiet --compile-bytecode --requirements requirements.txt
	@touch $@

# One build, with optimisation, for the demo, the tests and the benchmarks alike. The Python files
# are used where they are, so only a change of Rust sources makes it build again.
$(BUILT): $(READY) $(RUST_SOURCES) pyproject.toml papers/pyproject.toml
	@echo "compiling the Rust core: 2 to 5 minutes the first time"
	VIRTUAL_ENV=$(CURDIR)/$(VENV) PATH=$(CURDIR)/$(BIN):$$PATH \
	  $(BIN)/maturin develop --release --uv
	$(UV) pip install --quiet --no-deps --editable papers
	@$(BIN)/python -m compileall -q python/tutti papers/tutti_papers
	@touch $@

build: $(BUILT)

# For development: no link-time optimisation, incremental. The next `make build` builds the release again.
dev: $(READY)
	@rm -f $(BUILT)
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --quiet --skip-install
	@$(BIN)/python -m compileall -q python/tutti

# The second MPI that the library is tested with. Its files have the same names as Open MPI's, so it
# lives apart; what else is in there has the versions of requirements.txt.
$(MPICH)/.stamp: requirements.txt Makefile | $(READY)
	$(UV) venv --quiet --allow-existing --python $(PYO3_PYTHON) $(MPICH)
	$(UV) pip install --quiet --python $(MPICH)/bin/python --constraints requirements.txt \
	  mpich==$(MPICH_VERSION) lazy-loader mpi4py numpy
	@touch $@

# The C library for both, where the tests find it; without them it is compiled when it is first used.
mpi: build $(MPICH)/.stamp
	TUTTI_CACHE=$(CACHE) $(BIN)/tutti mpi info --compile --mpicc $(BIN)/mpicc
	TUTTI_CACHE=$(CACHE) $(BIN)/tutti mpi info --compile --mpicc $(MPICH)/bin/mpicc

# A source archive, a wheel for each processor, linked with Zig for glibc 2.17 or newer, and the
# wheel of the papers.
WHEELS := x86_64 aarch64
ZIG_VERSION := 0.17.1
wheel: $(READY)
	$(UV) pip install --quiet ziglang==$(ZIG_VERSION)
	@mkdir -p build
	$(BIN)/python scripts/third_party.py sbom build/tutti.cdx.json
	$(BIN)/maturin sdist --out $(OUT)/dist
	for processor in $(WHEELS); do \
	  rustup target add $$processor-unknown-linux-gnu && \
	  PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/maturin build --release --zig --compatibility manylinux2014 \
	    --sbom-include build/tutti.cdx.json --target $$processor-unknown-linux-gnu --out $(OUT)/dist \
	    || exit; \
	done
	$(UV) build --quiet --wheel papers --out-dir $(OUT)/dist

# The notes of a tag in OUT/release, and all files to publish in OUT/dist. It prints the commands that
# tag and publish. NO_BUILD=1 prepares the changelog and the notes only.
release: $(READY)
	$(BIN)/python scripts/release.py --out "$(OUT)" $(if $(NO_BUILD),--no-build)

# --- what it does --------------------------------------------------------------------------------

demo: build
	$(BIN)/tutti compare examples/01_which_all_reduce/experiment.toml --out $(OUT)/demo
	$(BIN)/tutti train run examples/12_resnet50_on_64_npus/training.toml --out $(OUT)/demo/resnet50
	$(BIN)/tutti sweep examples/12_resnet50_on_64_npus/sweep.toml --out $(OUT)/demo/resnet50_algorithms

# All exhibits of the four papers: their drawings in OUT/papers, and the comparison that `tutti paper`
# and docs/papers/README.md show.
papers: build
	$(MAKE) --no-print-directory --jobs 2 $(addprefix paper-,smart aries ace recursive-multiplying)
	$(BIN)/python scripts/store_papers.py $(OUT)/papers
	$(BIN)/python scripts/generate_reference.py

paper-%: build
	$(BIN)/tutti paper $* --out $(OUT)/papers

bench: build
	$(BIN)/python benchmarks/run.py

validate: build
	$(BIN)/python -m pytest validation

# The scoreboard of measured machines. DATA is a folder with train.csv and questions.csv. SAMPLE=1
# scores the committed sample instead, and writes to OUT. Folds run in processes of one thread each.
machines: build
	@test -n "$(DATA)$(SAMPLE)" \
	  || { echo "usage: make machines DATA=FOLDER, or make machines SAMPLE=1" >&2; exit 2; }
	OPENBLAS_NUM_THREADS=1 $(BIN)/python validation/score_machines.py \
	  $(if $(DATA),"$(DATA)",--sample --out $(OUT)/machines)

# The scoreboard of measured GPU clusters. DATA is a folder with NAME_train.csv and NAME_questions.csv.
gpu: build
	@test -n "$(DATA)" || { echo "usage: make gpu DATA=FOLDER" >&2; exit 2; }
	OPENBLAS_NUM_THREADS=1 $(BIN)/python validation/score_gpu.py "$(DATA)"

# --- checks --------------------------------------------------------------------------------------

# Before each commit, by the hook of `make hooks`: a few seconds.
check-fast: $(READY)
	cargo fmt --all --check
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	PYTHONPATH=python $(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/check_language.py

check: check-python check-rust

check-python: check-fast build
	$(BIN)/python scripts/build_site.py --no-examples
	$(BIN)/mypy
	$(BIN)/stubtest tutti._core --concise --mypy-config-file pyproject.toml

check-rust: $(READY)
	cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps --locked

test-rust: check-rust
	cargo test --quiet --workspace --locked

test-python: build browser mpi
	TUTTI_CACHE=$(CACHE) $(BIN)/python -m pytest --numprocesses auto --dist worksteal --durations 20

# Each part in turn, and at the end how long each took. Python tests are last but for the table, since
# pytest prints the 20 slowest. Two jobs run the first part: while one waits for the network, the
# linker or mypy, the other one compiles.
PARTS := build+check-python+test-rust+validate+mpi+browser test-python
test:
	@table=; for part in $(PARTS); do \
	  start=$$(date +%s); \
	  case $$part in *+*) jobs="--jobs 2 --output-sync=line";; *) jobs=;; esac; \
	  $(MAKE) --no-print-directory $$jobs $$(echo $$part | tr + ' ') || exit; \
	  table="$$table$$(printf '%-54s %6d s' $$part $$(($$(date +%s) - start)))\n"; \
	done; \
	printf "\n$$table"

# Hooks of git: `make check-fast` before a commit, `make check` before a push.
hooks: $(READY)
	$(BIN)/pre-commit install --install-hooks

# Verbs on mutated files of every kind. It prints its seed, and writes files that fail to OUT/fuzz.
SECONDS ?= 60
fuzz: build
	$(BIN)/python tests/fuzz/fuzzer.py --out $(OUT)/fuzz \
	  $(if $(CASE),--case $(CASE),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

# Each reader on COUNT damaged files, from number FIRST on; READER limits it to readers of that name.
COUNT ?= 1000
fuzz-readers: build
	$(BIN)/python tests/fuzz/fuzz_readers.py --jobs $(or $(JOBS),2) \
	  $(if $(CASE),--case $(CASE),--count $(COUNT)) $(if $(FIRST),--first $(FIRST)) \
	  $(if $(SEED),--seed $(SEED)) $(if $(READER),--only $(READER))

# The long tests of the MPI library: every schedule on up to 64 ranks, and a soak. Hours on two cores.
test-mpi: build mpi
	TUTTI_MPI_LONG=1 TUTTI_MPI_EXAMPLES=50 $(BIN)/python -m pytest -s tests/mpi

# Models of PyTorch: apart from the other tests, since its wheel is large. TORCH=2.5.1 tests that
# version, in an environment of its own.
TORCH_FOLDER := build/torch$(addprefix -,$(TORCH))
test-torch: build
	$(UV) venv --quiet --system-site-packages --allow-existing $(TORCH_FOLDER)
	$(UV) pip install --quiet --python $(TORCH_FOLDER)/bin/python torch$(addprefix ==,$(TORCH)) \
	  -r requirements.txt
	PYTHONPATH=python $(TORCH_FOLDER)/bin/python -m pytest -q tests/torch

# Debian's Chromium, for the tests that open a report as a person would.
browser:
	@command -v chromium >/dev/null || .ci/install chromium "The browser tests need Chromium"

# The documentation site. Links are checked, and each example runs and shows its output.
docs: build mpi
	TUTTI_CACHE=$(CACHE) $(BIN)/python scripts/build_site.py

# The pages and schemas that are written from the code.
reference: build
	$(BIN)/python scripts/generate_parameters.py
	$(BIN)/python scripts/generate_reference.py
	$(BIN)/python scripts/generate_glossary.py
	$(BIN)/python scripts/third_party.py licences

# The outputs of commands that pages show. PAGES selects pages by parts of their names.
outputs: build mpi
	TUTTI_UPDATE_PAGES=1 TUTTI_CACHE=$(CACHE) $(BIN)/python -m pytest -q tests/docs/test_code.py \
	  -k "commands_of_a_page $(if $(PAGES),and ($(PAGES)))"

format: $(READY)
	cargo fmt --all
	$(BIN)/ruff check --quiet --fix
	$(BIN)/ruff format --quiet

# Brings requirements.txt up to date with pyproject.toml.
lock: $(BIN)/uv
	$(UV) pip compile --quiet --universal --python-version 3.11 --extra dev --upgrade \
	  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	  pyproject.toml --output-file requirements.txt

clean:
	rm -rf $(VENV) target build $(OUT) .pytest_cache .mypy_cache .ruff_cache .hypothesis python/tutti/*.so
