"""`reenact collect`: an OTLP receiver and store in one process, for programs of any language."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from reenact.cli import options, retaining
from reenact.disk.private import read_settings
from reenact.errors import InputError, UsageError
from reenact.keep.trace_assembly import IDLE_S, PRUNE_S

if TYPE_CHECKING:
    from reenact.collect.server import Server
    from reenact.collect.settings import Settings

_MEBIBYTE = 1 << 20
_TOKEN = "REENACT_COLLECT_TOKEN"  # noqa: S105 - the variable's name


@click.command("collect")
@options.store_folder
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--http-port", default=4318, show_default=True, help="OTLP over HTTP; 0 for any that is free.")
@click.option("--grpc-port", default=4317, show_default=True, help="OTLP over gRPC; 0 for any that is free.")
@click.option("--token-file", type=click.Path(path_type=Path), help=f"A bearer token to ask for.  [also: ${_TOKEN}]")
@click.option("--tls-cert", type=click.Path(path_type=Path), help="Certificate chain (PEM); TLS on both ports.")
@click.option("--tls-key", type=click.Path(path_type=Path), help="Its private key (PEM).")
@click.option("--insecure", is_flag=True, help="Listen beyond this machine without a token or without TLS.")
@click.option("--cors", "origins", multiple=True, metavar="ORIGIN", help="Let pages of ORIGIN send; `*` for all.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="A further name this collector is asked by.")
@click.option("--max-request", default=64, show_default=True, metavar="MIB", help="Of one request, unpacked.")
@click.option("--max-in-flight", default=256, show_default=True, metavar="MIB", help="Of all requests under way.")
@click.option("--connections", default=2000, show_default=True, help="Open at once, at most.")
@click.option(
    "--forward", "forward", multiple=True, metavar="URL", help="Send everything on: http, https, grpc, grpcs, file."
)
@click.option("--redact", is_flag=True, help="Take out what the redaction policy in force says, before it is written.")
@click.option("--policy", metavar="FILE", help="The same by this policy, or by `default`.")
@click.option("--idle", default=IDLE_S, show_default=True, metavar="SECONDS", help="When a trace counts as over.")
@retaining.options
@click.option("--prune-every", default=PRUNE_S, hidden=True, metavar="SECONDS")
def collect_command(folder: Path | None, **choices: object) -> None:
    """Take spans and log events in over OTLP, HTTP on 4318 and gRPC on 4317, until it is told to end.

    A request is answered when what it brought is on disk. `reenact ls`, `show` and `replay` read the store meanwhile.
    With --keep-days or --max-size it does as `reenact store prune` does, at its start and every ten minutes.
    """
    from reenact.collect.callers import is_loopback
    from reenact.keep.collecting import collect, require_extra
    from reenact.keep.forwarding import senders

    require_extra("reenact collect")
    keeper = [f"--idle={choices['idle']}"]
    if retaining.chosen(choices) is not None:
        keeper += [*retaining.spelled(choices), f"--prune-every={choices['prune_every']}"]
    store = options.store(folder)
    store.prepare()
    settings = _settings(store.folder, choices)
    urls = cast("tuple[str, ...]", choices["forward"])

    def say(line: str) -> None:
        options.say(f"reenact: {line}")

    def ready(server: Server) -> None:
        scheme = "https" if settings.tls else "http"
        say(f"collecting into {store.folder}")
        if settings.decoding.redact is None:
            say("spans are kept as they are sent; --redact takes out what the redaction policy says")
        if not settings.token:
            whoever = "any program of this machine" if is_loopback(settings.host) else "whoever reaches it"
            say(f"no token is asked for, so that {whoever} may send; --token-file FILE (or ${_TOKEN}) asks for one")
        say(f"OTLP/HTTP {scheme}://{settings.host}:{server.http_port}  OTLP/gRPC {settings.host}:{server.grpc_port}")

    backends = senders(urls) if urls else []
    try:
        collect(store, settings, keeper=keeper, backends=backends, say=say, ready=ready)
    except OSError as error:
        if error.filename is not None:
            raise InputError(str(error.filename), f"cannot be used: {error.strerror}") from error
        raise InputError(settings.host, f"cannot be listened on: {error.strerror or error}") from error


def _settings(store: Path, choices: dict[str, object]) -> Settings:
    from reenact.collect.callers import is_host, is_loopback, is_origin
    from reenact.collect.settings import Settings
    from reenact.keep.collecting import decoding

    token, host = _token(choices["token_file"]), str(choices["host"])
    origins, hosts = (cast("tuple[str, ...]", choices[name]) for name in ("origins", "hosts"))
    for names, fits, option, example in (
        (origins, is_origin, "--cors", "https://app.example:8443, with no slash at its end, or *"),
        (hosts, is_host, "--allow-host", "collector.example or collector.example:4318"),
    ):
        for each in names:
            if not fits(each):
                raise UsageError(f"{option} {each!r} can never fit", hint=f"write it as {example}")
    tls = _tls(choices["tls_cert"], choices["tls_key"])
    if not choices["insecure"] and not is_loopback(host):
        lacking = [what for what, there in (("token", token), ("TLS", tls)) if not there]
        if lacking:
            hint = f"Give --token-file (or ${_TOKEN}) and --tls-cert with --tls-key, or say --insecure."
            raise UsageError(
                f"{host} can be reached from elsewhere, and there is no {' and no '.join(lacking)}", hint=hint
            )
    redact = None
    if choices["policy"] or choices["redact"]:
        from reenact.keep.collector_redaction import taking_out

        redact = taking_out(store, dict(os.environ), str(choices["policy"] or ""))
    return Settings(
        decoding=decoding(redact),
        host=host,
        http_port=cast("int", choices["http_port"]),
        grpc_port=cast("int", choices["grpc_port"]),
        most_bytes=cast("int", choices["max_request"]) * _MEBIBYTE,
        in_flight_bytes=cast("int", choices["max_in_flight"]) * _MEBIBYTE,
        connections=cast("int", choices["connections"]),
        token=token,
        hosts=hosts,
        origins=origins,
        tls=tls,
    )


def _token(path: object) -> str:
    if isinstance(path, Path):
        try:
            token = read_settings(path, "the token").decode().strip()
        except (OSError, ValueError) as error:
            raise InputError(str(path), f"the token cannot be read: {error}") from None
        if not token:
            raise InputError(str(path), "holds no token")
        return token
    return os.environ.get(_TOKEN, "").strip()


def _tls(certificate: object, key: object) -> ssl.SSLContext | None:
    if certificate is None and key is None:
        return None
    if not isinstance(certificate, Path) or not isinstance(key, Path):
        raise UsageError("--tls-cert and --tls-key belong together")
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(certificate, key)
        context.set_alpn_protocols(["h2", "http/1.1"])
    except (OSError, ValueError) as error:
        raise InputError(str(certificate), f"cannot be used with {key}: {error}") from None
    return context
