"""One HTTP exchange with a backend that holds traces."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from reenact.errors import InputError
from reenact.version import VERSION

_TIMEOUT_S = 60.0
_EXCERPT = 300


def printable_url(url: str) -> str:
    """Give a URL as it may be printed: without user, password, query and fragment."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def user_of(url: str) -> tuple[str, str]:
    """Give the user and the password of a URL, as they are meant; empty where there are none."""
    parts = urlsplit(url)
    return unquote(parts.username or ""), unquote(parts.password or "")


class _Unmoved(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: credentials stay with whom they were given to."""

    def redirect_request(self, req: object, fp: object, code: int, msg: str, headers: object, newurl: str) -> None:
        """Refuse."""


def fetch_reply(url: str, headers: Mapping[str, str], body: bytes | None = None, *, most: int) -> bytes:
    """Ask `url`, by POST where there is a body, and give the answer of at most `most` bytes.

    Raises `InputError` naming the place, with the status and the beginning of what was answered; no header is in it.
    """
    place = printable_url(url)
    request = urllib.request.Request(url, body, {"User-Agent": f"reenact/{VERSION}", **headers})  # noqa: S310 - the caller's scheme
    try:
        with urllib.request.build_opener(_Unmoved).open(request, timeout=_TIMEOUT_S) as answer:
            data: bytes = answer.read(most + 1)
    except urllib.error.HTTPError as refusal:
        text = refusal.read(_EXCERPT).decode(errors="replace").strip()
        raise InputError(place, f"answered {refusal.code} {refusal.reason}" + (f": {text}" if text else "")) from None
    except (OSError, http.client.HTTPException, ValueError) as failure:
        hint = "is it running, and is the address right?"
        raise InputError(place, f"cannot be asked: {failure}", hint=hint) from None
    if len(data) > most:
        raise InputError(place, f"answered with more than {most >> 20} MiB at once")
    return data
