"""Admits only requests that know the token, and adds the headers of a strict policy."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_LARGEST_BODY = 1 << 18


@dataclass(frozen=True)
class Access:
    """Who may use the application.

    Attributes:
        host: The address or name that the server listens on.
        port: Its port.
        token: The secret of the session.
    """

    host: str
    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def cookie(self) -> str:
        """The name of the cookie; browsers share cookies between ports of a host."""
        return f"tutti_explore_{self.port}"

    @property
    def url(self) -> str:
        """The address of the page, with the token."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104 - compared
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self.port}/?token={self.token}"

    def serves(self, host: str) -> bool:
        """Whether a Host header names this server.

        A page of another site can point its own name at this server (DNS rebinding), so names are
        refused unless the server was started with them. Addresses cannot be rebound.
        """
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname or "", parts.port
        except ValueError:
            return False
        if port != self.port:
            return False
        if self.host in _LOOPBACK:
            return name in _LOOPBACK
        return name in (self.host, "localhost") or _is_address(name)

    def knows(self, headers: dict[str, str]) -> bool:
        """Whether the headers of a request have the token."""
        given = headers.get("authorization", "").removeprefix("Bearer ")
        return self.matches(given) or self.matches(self._from_cookie(headers.get("cookie", "")))

    def matches(self, given: str) -> bool:
        """Whether a text is the token."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _from_cookie(self, text: str) -> str:
        try:
            found = SimpleCookie(text).get(self.cookie)
        except CookieError:
            return ""
        return found.value if found else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """Checks host, origin and token of each request before the application receives it."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        """Wraps the application."""
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *extra]}
            await send(message)

        headers = {name.decode("latin-1"): value.decode("latin-1")
                   for name, value in scope["headers"]}  # fmt: skip
        refused = self._refused(scope, headers)
        if refused is not None:
            await refused(scope, receive, secured)
        else:
            await self._app(scope, receive, secured)

    def _refused(self, scope: Scope, headers: dict[str, str]) -> ASGIApp | None:
        """Returns the response of a request that is not admitted."""
        from starlette.responses import PlainTextResponse, RedirectResponse

        host = headers.get("host", "")
        if not self._access.serves(host):
            return PlainTextResponse("error: unknown host\n", 421)
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return PlainTextResponse("error: the request comes from another site\n", 403)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/" and scope["method"] == "GET" and self._access.matches(given):
            response = RedirectResponse("/", 303)
            response.set_cookie(
                self._access.cookie, self._access.token, httponly=True, samesite="strict"
            )
            return response
        if not self._access.knows(headers):
            text = (
                "error: the token is missing\nhint: open the address that `tutti explore` printed\n"
            )
            return PlainTextResponse(text, 401)
        if int(headers.get("content-length") or 0) > _LARGEST_BODY:
            return PlainTextResponse("error: the request is too large\n", 413)
        return None
