# Everything is built by CMake (CMakePresets.json); this file names what people do with it.
#
#   make            build the extension, the nodes, the benchmark driver and the checker of histories
#   make deps       install the Debian packages of packages.txt that are missing
#   make test-deps  those of packages-test.txt as well, which the tests need
#   make demo       a throw-away server under load, with every protocol: one table of results
#   make check      every test; the last line counts them
#   make soak [SEEDS=2000] [EXPLORE_BUDGET=…]  the long tests: seeds of every protocol, hybrid code
#                                             and fault in the simulator, all of the exploration,
#                                             everything under the sanitizers; prints what was run
#   make kills [ARGS="--kills=500 --seed=7"]   kills sessions, nodes and whole servers under load, and counts
#                       what was acknowledged and is lost, and what is there and was not sent
#   make faults [ARGS=…]      what fails x at which step x under which protocol, in the simulator and
#                       on real processes, as tables; a share is part of check
#   make check-tsan     threads under ThreadSanitizer; long, not part of check
#   make check-verbs    the verbs fabric, and the engine on it, in a guest that has RDMA devices;
#                       part of check
#   make check-assert   the server's tests on a PostgreSQL with assertions, which it fetches and
#                       builds; longer, not part of check
#   make check-pg-suite [ARGS=…]  PostgreSQL's own regression tests, which it fetches, on rdmacc tables;
#                       a share of them is part of check
#   make check-clients [ARGS=…]  sysbench, pgbench, SQLAlchemy's and Django's suites, programs on Node's
#                       libraries, on heaps and on rdmacc tables; a share of them is part of check
#   make coverage [ARGS=…]   what the simulator's concurrent campaign alone executes of the engine,
#                       and what it does not and why; longer, not part of check
#   make mutation [ARGS=…]   small faults planted in the engine, and how many of them the campaign
#                       notices; longer still
#   make protocol-table [ARGS=…]   lines, verbs, instructions and rates of each protocol
#   make ledger [ARGS=…]     instructions and allocations of a transaction, protocol by protocol
#   make sandbox [DIR=…] [NODES=2] [PORT=…]   a server to play with; prints how to connect
#   make sandbox-stop [DIR=…]
#   make bench [ARGS=…]                        ratios side by side; with ARGS, rdmacc_bench itself
#                       (ARGS='ycsb -T 10 --report=ycsb.html': a page for a browser)
#   make bench-sql [ARGS=…]   SQL on rdmacc tables beside the same on heaps: ratios, targets
#   make bench-workloads [ARGS=…]   SmallBank, YCSB, TATP, TPC-C, TPC-E in SQL, heaps beside rdmacc tables
#   make compare [ARGS=…]   the same natively as well, and all of it as a page for a browser (build/compare)
#   make install | uninstall                  into PostgreSQL's own directories
#   make format | clean

BUILD := build/release
JOBS ?= $(shell nproc)
DIR ?= /tmp/rdmacc-sandbox
NODES ?= 2
PORT ?=
ARGS ?=
SEEDS ?= 2000
EXPLORE_BUDGET ?= 1000000
PG_CONFIG ?= $(firstword $(wildcard /usr/lib/postgresql/15/bin/pg_config) pg_config)
export PG_CONFIG

PROGRAMS := rdmacc_node rdmacc_bench rdmacc_report
PKGLIBDIR = $(DESTDIR)$(shell $(PG_CONFIG) --pkglibdir)
SHAREDIR = $(DESTDIR)$(shell $(PG_CONFIG) --sharedir)
BINDIR = $(DESTDIR)$(shell $(PG_CONFIG) --bindir)

.PHONY: all deps test-deps build demo check soak kills faults check-tsan check-verbs check-assert \
  check-pg-suite check-clients coverage mutation ledger protocol-table sandbox sandbox-stop bench bench-sql bench-workloads compare \
  format clean install uninstall
.NOTPARALLEL:

all: $(BUILD)/build.ninja
	@cmake --build --preset release -j $(JOBS) --target pg_rdmacc $(PROGRAMS) rdmacc_check

$(BUILD)/build.ninja: CMakeLists.txt CMakePresets.json
	@cmake --preset release --log-level=WARNING

deps:
	@scripts/deps.sh

test-deps:
	@scripts/deps.sh packages-test.txt

# What a server and the benchmark need, without the tests.
build: deps all

demo: build
	@scripts/demo.py

check: test-deps
	@scripts/check.py --jobs $(JOBS)

soak: test-deps
	@scripts/soak.py --jobs $(JOBS) --seeds $(SEEDS) --explore-budget $(EXPLORE_BUDGET)

kills: test-deps build
	@scripts/kills.py $(ARGS)

faults: test-deps build
	@cmake --build --preset release -j $(JOBS) --target rdmacc_campaign power
	@scripts/faults.py --jobs $(JOBS) $(ARGS)

check-verbs: test-deps $(BUILD)/build.ninja
	@cmake --build --preset release -j $(JOBS)
	@scripts/check_verbs.py

check-tsan: test-deps
	@scripts/tsan.py --jobs $(JOBS)

check-pg-suite: test-deps build
	@scripts/pg_suite.py $(ARGS)

check-clients: test-deps build
	@scripts/deps.sh packages-clients.txt
	@scripts/check_clients.py $(ARGS)

check-assert: test-deps
	@scripts/assert_server.py --jobs $(JOBS)

coverage: test-deps
	@scripts/deps.sh packages-coverage.txt
	@scripts/coverage.py --jobs $(JOBS) $(ARGS)

mutation: test-deps
	@scripts/mutation.py --jobs $(JOBS) $(ARGS)

ledger: build
	@scripts/deps.sh packages-ledger.txt
	@scripts/transaction_ledger.py $(ARGS)

protocol-table: build
	@scripts/protocol_table.py $(ARGS)

sandbox: build
	@scripts/sandbox.py start "$(DIR)" --nodes $(NODES) $(if $(PORT),--port $(PORT))

sandbox-stop:
	@scripts/sandbox.py stop "$(DIR)"

bench: build
	@scripts/bench.py $(ARGS)

bench-sql: build
	@scripts/bench_sql.py $(ARGS)

bench-workloads: build
	@scripts/workload_bench.py $(ARGS)

compare: build
	@scripts/compare.py $(ARGS)

format:
	@git ls-files -co --exclude-standard '*.h' '*.cc' | xargs clang-format -i

install: all
	install -D -m 755 $(BUILD)/lib/pg_rdmacc.so $(PKGLIBDIR)/pg_rdmacc.so
	install -D -m 644 -t $(SHAREDIR)/extension rdmacc.control $(wildcard pg_rdmacc/sql/rdmacc--*.sql)
	install -D -m 644 -t $(SHAREDIR)/extension rdmacc_workloads.control
	cat pg_rdmacc/workload/script/*.sql > $(SHAREDIR)/extension/rdmacc_workloads--1.1.sql
	chmod 644 $(SHAREDIR)/extension/rdmacc_workloads--1.1.sql
	for script in $$(cd pg_rdmacc/workload/pgbench && find . -name '*.sql'); do \
	  install -D -m 644 pg_rdmacc/workload/pgbench/$$script \
	    $(SHAREDIR)/rdmacc_workloads/$$script || exit 1; \
	done
	install -D -m 755 -t $(BINDIR) $(addprefix $(BUILD)/bin/,$(PROGRAMS))

uninstall:
	rm -f $(PKGLIBDIR)/pg_rdmacc.so $(SHAREDIR)/extension/rdmacc.control \
	  $(addprefix $(SHAREDIR)/extension/,$(notdir $(wildcard pg_rdmacc/sql/rdmacc--*.sql))) \
	  $(SHAREDIR)/extension/rdmacc_workloads.control \
	  $(SHAREDIR)/extension/rdmacc_workloads--1.1.sql $(addprefix $(BINDIR)/,$(PROGRAMS))
	rm -rf $(SHAREDIR)/rdmacc_workloads

clean:
	rm -rf build
