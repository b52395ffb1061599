"""The configurations that we ship: what must be in them, and that the built Collector takes every word of them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from collector.real import BINARY, GATEWAY, ROOT, needs_collector
from reenact.cli.collect import collect_command

FOLDER = ROOT / "collector"
MANIFEST = yaml.safe_load((FOLDER / "builder.yaml").read_text())
NOT_CONFIGURATIONS = {"builder.yaml", "compose.yaml"}
ELSEWHERE = {"debug": "exporters", "nop": "exporters"}
"""Components for those who look into things: in the build, and in no configuration of ours."""
SETTINGS = {
    "GATEWAY_TOKEN": "t-1",
    "GATEWAY_CERT": "server.pem",
    "GATEWAY_KEY": "server.key",
    "AGENT_HOST": "h-1",
    "AGENT_ENVIRONMENT": "production",
    "BACKEND_HEADERS": '{authorization: "Bearer x"}',
    "GATEWAY_HEADERS": '{authorization: "Bearer x"}',
}
Config = dict[str, Any]


def read(path: Path) -> Config:
    return yaml.safe_load(path.read_text())


def shipped() -> list[tuple[Path, ...]]:
    """Every configuration as it is to be used: whole ones alone, overlays over the gateway."""
    overlays = [path for path in sorted(FOLDER.glob("*.yaml")) if path.name not in NOT_CONFIGURATIONS]
    whole = [path for path in overlays if "receivers" in read(path) and "pipelines" in read(path).get("service", {})]
    return [(GATEWAY,), *[(path,) if path in whole else (GATEWAY, path) for path in overlays]]


def ids(configs: tuple[Path, ...]) -> str:
    return "+".join(path.stem for path in configs)


def exporters() -> list[tuple[str, Config]]:
    """Every exporter that sends somewhere."""
    return [
        (f"{path.name}: {name}", exporter)
        for path in {path for configs in shipped() for path in configs}
        for name, exporter in read(path).get("exporters", {}).items()
        if name.partition("/")[0] != "file" and "endpoint" in exporter
    ]


def test_the_versions_move_together() -> None:
    modules = [each["gomod"] for part in MANIFEST.values() if isinstance(part, list) for each in part]
    versions = {"provider" if "/confmap/" in module else "component": set[str]() for module in modules}
    for module in modules:
        versions["provider" if "/confmap/" in module else "component"].add(module.split()[1])
    assert versions["component"] == {f"v{MANIFEST['dist']['version']}"}
    assert len(versions["provider"]) == 1
    clients = (Path(__file__).parent / "clients" / "go" / "go.mod").read_text()
    assert f"cmd/telemetrygen v{MANIFEST['dist']['version']}" in clients


def test_queues_are_on_disk_and_nothing_is_given_up() -> None:
    found = exporters()
    assert len(found) >= 3
    for name, exporter in found:
        queue = exporter["sending_queue"]
        assert queue["storage"].startswith("file_storage"), name
        assert queue["block_on_overflow"] is False, name
        assert exporter.get("retry_on_failure", {}).get("max_elapsed_time") in ("0s", 0), name
    for configs in shipped():
        for path in configs:
            config = read(path)
            for name, extension in config.get("extensions", {}).items():
                if name.startswith("file_storage"):
                    assert extension["fsync"] is True, (path, name)
                    assert extension["recreate"] is True, (path, name)
            assert not any(name.startswith("batch") for name in config.get("processors", {})), "queues batch, on disk"


def test_requests_of_64_mib_come_in_and_no_listener_is_open_to_others() -> None:
    for path in (GATEWAY, FOLDER / "agent.yaml"):
        config = read(path)
        protocols = config["receivers"]["otlp"]["protocols"]
        assert protocols["grpc"]["max_recv_msg_size_mib"] == 64
        assert protocols["http"]["max_request_body_size"] == 64 << 20
        listening = [each["endpoint"] for each in [*protocols.values(), config["extensions"]["health_check"]]]
        assert all(re.fullmatch(r"\$\{env:\w+:-127\.0\.0\.1:\d+\}", each) for each in listening), listening


def test_patterns_of_the_second_line_begin_with_a_literal() -> None:
    patterns = read(GATEWAY)["processors"]["redaction/values"]["blocked_values"]
    assert len(patterns) >= 8
    assert all(re.match(r"[A-Za-z0-9_-]{2,}", pattern) for pattern in patterns)
    assert not any("@" in pattern for pattern in patterns)


def test_the_readme_says_every_variable() -> None:
    named = {
        name for configs in shipped() for path in configs for name in re.findall(r"\$\{env:(\w+)", path.read_text())
    }
    text = (FOLDER / "README.md").read_text()
    assert not [name for name in sorted(named) if f"`{name}`" not in text]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], **SETTINGS}
    return subprocess.run(
        [str(BINARY), *words],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.slow
@needs_collector
@pytest.mark.parametrize("configs", shipped(), ids=ids)
def test_the_built_collector_takes_every_word(configs: tuple[Path, ...]) -> None:
    done = run("validate", *(word for path in configs for word in ("--config", str(path))))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@needs_collector
def test_a_word_that_is_wrong_is_refused() -> None:
    done = run("validate", "--config", str(GATEWAY), "--set", "exporters::otlp_http/backend::sending_queue::storrage=x")
    assert done.returncode == 1
    assert "storrage" in done.stderr


@pytest.mark.slow
@needs_collector
def test_every_component_of_the_build_is_used_or_can_be(tmp_path: Path) -> None:
    built = yaml.safe_load(run("components").stdout)
    assert built["buildinfo"]["version"] == MANIFEST["dist"]["version"]
    parts = ("receivers", "processors", "exporters", "extensions")
    has = {(part, each["name"]) for part in parts for each in built[part] or []}
    uses = {
        (part, name.partition("/")[0])
        for configs in shipped()
        for path in configs
        for part in parts
        for name in read(path).get(part, {})
    }
    assert uses <= has
    assert has - uses == {(part, name) for name, part in ELSEWHERE.items()}
    small = tmp_path / "small.yaml"
    small.write_text(
        "receivers: {otlp: {protocols: {http: {}}}}\nexporters: {debug: {verbosity: detailed}, nop: {}}\n"
        "service: {pipelines: {traces: {receivers: [otlp], exporters: [debug, nop]}}}\n"
    )
    assert run("validate", "--config", str(small)).returncode == 0


def test_the_composition_names_what_there_is_and_publishes_on_loopback_only() -> None:
    composed = read(FOLDER / "compose.yaml")
    container = (FOLDER / "Containerfile").read_text()
    configs = "".join(path.read_text() for configs in shipped() for path in configs)
    for name, service in composed["services"].items():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
        if "build" in service:
            assert f" AS {service['build']['target']}\n" in container, name
            assert (FOLDER / service["build"]["context"] / service["build"]["dockerfile"]).exists()
    gateway = composed["services"]["gateway"]
    assert {name for name in gateway["environment"] if name != "GOMEMLIMIT"} <= set(re.findall(r"env:(\w+)", configs))
    given = [Path(word).name for word in gateway["command"] if word.startswith("/etc/gateway/")]
    assert given == ["gateway.yaml", "with-token.yaml"]
    copied = re.findall(r"([\w./-]+\.yaml)", container)
    assert all((ROOT / path).exists() for path in copied if "/" in path and not path.startswith("/etc"))
    collecting = composed["services"]["store"]["command"]
    assert collecting[0] == "collect"
    options = {word for word in collecting if word.startswith("--")}
    assert options <= {name for each in collect_command.params for name in each.opts}
