"""`http.client`, on which `urllib.request` stands: cut at a connection's `request` and `getresponse`.

What a library above has cut already (urllib3) is one call, and passes here. Requests made of `putrequest` and its kin
are not recorded; a replay refuses them where they connect.
"""

from __future__ import annotations

import logging
from functools import wraps
from typing import Any

from reenact.boundary import door, lanes, plain_http, wire
from reenact.contracts.doorman import Passage
from reenact.contracts.integration import Integration, PatchSet
from reenact.values import alarms
from reenact.values.call import Raised

_log = logging.getLogger("reenact")


def _enter(connection: Any, method: str, target: str, body: Any) -> Passage | None:
    doorman = plain_http.doorman(connection.host, connection.port)
    if doorman is None:
        return None
    try:
        data = plain_http.body_bytes(body)
        url = wire.full_url(*wire.request_of(connection), target)
        if data is None:  # a generator: told when its response comes
            return None
        call = plain_http.call(method, url, data)
    except Exception:  # our failure is never the agent's
        alarms.pass_on()
        _log.debug("reenact could not read a request", exc_info=True)
        return None
    return plain_http.opened(doorman, call)


def _request(original: Any) -> Any:
    @wraps(original)
    def request(self: Any, method: str, url: str, body: Any = None, headers: Any = None, **kwargs: Any) -> Any:
        header_fields: Any = {} if headers is None else headers
        passage = _enter(self, method, url, body)
        if passage is None:
            return original(self, method, url, body, header_fields, **kwargs)
        answer = passage.answer
        exchange = wire.Exchange(passage, whole=False, decoded=False, tells_failure=True)
        if answer is not None:
            if isinstance(answer, Raised) and not wire.failed_receiving(answer):
                passage.wait(passage.end_order)
                error = plain_http.failure(answer.exception, passage)
                passage.raised(error)
                raise error
            self.sock = wire.RecordedSocket(passage, method)
        try:
            with passage.crossing(), lanes.aside():
                original(self, method, url, body, header_fields, **kwargs)
        except BaseException as error:
            passage.raised(error)
            raise
        exchange.attach(self)
        return None

    return request


def _getresponse(original: Any) -> Any:
    @wraps(original)
    def getresponse(self: Any) -> Any:
        exchange = wire.taken_from(self)
        if exchange is not None:
            return exchange.respond(self, original)
        if type(self).__module__ == "http.client" and plain_http.doorman(self.host, self.port) is not None:
            door.pass_by(f"a request to {self.host} whose body is a stream, or that was put together by hand")
        return original(self)

    return getresponse


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        patches.replace(module.HTTPConnection, "request", _request)
        patches.replace(module.HTTPConnection, "getresponse", _getresponse)

    patches.when_imported("http.client", cut)


INTEGRATION = Integration(name="http_client", libraries=("http.client",), install=_install)
