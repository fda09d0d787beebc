"""Sign-in by a person: in a browser, whose redirect is received on loopback, or by pasting the redirect's address."""

from __future__ import annotations

import secrets
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.abc
from anyio.abc import SocketAttribute

from toolbridge.callbacks import callback
from toolbridge.concurrency import on_daemon_thread
from toolbridge.servers.connection import enclosing_deadlines
from toolbridge.servers.http.ssrf import HttpRuleError, check_authorization_url, origin
from toolbridge.trust.sanitise import for_error, for_terminal

SIGN_IN_SECONDS = 300.0
PATH = "/callback"
_HOST = "127.0.0.1"
_MAX_REQUEST = 16 * 1024
_REQUEST_SECONDS = 10.0
_MAX_CONNECTIONS = 16

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>toolbridge</title></head>
<body><p>{text}</p></body></html>
"""
_SIGNED_IN = "You are signed in. You can close this page and go back to your terminal or application."
_REFUSED = "The sign-in did not succeed. You can close this page and go back to your terminal or application."
_NOT_FOUND = "This is not the sign-in callback."


class SignInLock:
    """The token refresh lock of one session: one task at a time gets tokens, and the others may wait for a person."""

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._asking = False
        self._waiting: list[Callable[[], None]] = []
        """For each waiting task, pauses its deadlines."""

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """Wait for the lock and hold it within the context; waiting pauses the deadlines while a person is asked."""
        deadlines = enclosing_deadlines()
        with ExitStack() as pauses:

            def pause() -> None:
                for deadline in deadlines:
                    pauses.enter_context(deadline.paused())

            self._waiting.append(pause)
            try:
                if self._asking:
                    pause()
                await self._lock.acquire()
            finally:
                self._waiting.remove(pause)
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def asking(self) -> Generator[None]:
        """Mark that the holder asks a person within the context: the deadlines of all waiting tasks pause, too."""
        self._asking = True
        for pause in self._waiting:
            pause()
        try:
            yield
        finally:
            self._asking = False


class SignInFailedError(Exception):
    """No person signed in. The message holds no code, token or state."""


@dataclass(frozen=True, slots=True, repr=False)
class AuthorizationAnswer:
    """An authorization server's redirect: a code, or the name of an error."""

    state: str
    code: str = ""
    issuer: str | None = None
    error: str = ""


def read_answer(query: str) -> AuthorizationAnswer | None:
    """Parse the query of a redirect; None if it has no state, or neither a code nor an error. Verifies nothing."""
    try:
        given = parse_qs(query, max_num_fields=50)
    except ValueError:
        return None
    first = {name: values[0] for name, values in given.items()}
    if "state" not in first or not ("code" in first or "error" in first):
        return None
    return AuthorizationAnswer(first["state"], first.get("code", ""), first.get("iss"), first.get("error", ""))


class SignInAttempt(Protocol):
    """One open attempt to sign in."""

    @property
    def redirect_uri(self) -> str:
        """The address to which the authorization server redirects the browser."""
        ...

    async def authorize(self, url: str) -> AuthorizationAnswer:
        """Have a person open this page and sign in, wait, and return the redirect's answer, whose state was verified.

        Raises:
            SignInFailedError: no person did, or the authorization server refused.
        """
        ...


class SignIn(Protocol):
    """Asks a person to sign in."""

    def attempt(self, server: str, *, port: int | None, fixed: bool) -> AbstractAsyncContextManager[SignInAttempt]:
        """Prepare for a sign-in to a server within the context. Asks nobody yet: see `SignInAttempt.authorize`.

        Args:
            server: the server's name, to be shown.
            port: the redirect's port; None for any.
            fixed: whether no other port will do; else another one may be chosen if it is in use.

        Raises:
            SignInFailedError: the port is fixed and in use.
        """
        ...


SignInLike: TypeAlias = SignIn | Callable[[str, str], object | Awaitable[object]]
"""A function gets the server's name and the URL of the sign-in page, and has a person open it. It may return before the
person has signed in; an exception, or a result of False, cancels the sign-in."""


def sign_in_of(given: SignInLike) -> SignIn:
    """Wrap a function as a SignIn; a SignIn is returned unchanged.

    Raises:
        MisuseError: it is neither.
    """
    if isinstance(given, type) or not hasattr(given, "attempt"):
        return _SignInByFunction(callback("sign_in", given, "sign_in", "server", "url"))
    return given  # pyright: ignore[reportReturnType]


class BrowserSignIn:
    """Opens the sign-in page in the person's browser, and receives the redirect on loopback."""

    def __init__(self, *, seconds: float = SIGN_IN_SECONDS, open_page: Callable[[str], object] | None = None) -> None:
        self._seconds = seconds
        self._open_page = open_page or _open_in_browser

    async def _show(self, server: str, url: str) -> None:
        """Print the page's address and open it in the browser, on a thread; may wait. Failures are only printed."""
        _print(_invitation(server, url))
        await on_daemon_thread(lambda: _try_to_open(self._open_page, url))

    @asynccontextmanager
    async def attempt(self, server: str, *, port: int | None, fixed: bool) -> AsyncGenerator[SignInAttempt]:
        """Listen on loopback for the redirect within the context; see `SignIn.attempt`.

        Raises:
            SignInFailedError: the port is fixed and in use.
        """
        try:
            listener = await open_listener(port, fixed=fixed)
        except OSError:
            raise SignInFailedError(f"port {port}, to which the browser is redirected, is in use") from None
        try:
            yield _InBrowser(server, listener, self._show, self._seconds)
        finally:
            with anyio.CancelScope(shield=True):
                await listener.aclose()


class _SignInByFunction(BrowserSignIn):
    """Hands the sign-in page to a function of the host."""

    def __init__(self, function: Callable[..., Awaitable[Any]]) -> None:
        super().__init__()
        self._function = function

    async def _show(self, server: str, url: str) -> None:
        """Await the host's function with the page's URL. Raises `SignInFailedError` if it raises or returns False."""
        try:
            answer = await self._function(server, url)
        except Exception as error:
            raise SignInFailedError(f"the host's sign_in failed with {type(error).__name__}") from error
        if answer is False:
            raise SignInFailedError("the host's sign_in cancelled it")


class HeadlessSignIn:
    """Prints the sign-in page's address, and reads the address of the redirect from a person."""

    def __init__(self, *, seconds: float = SIGN_IN_SECONDS, ask: Callable[[], str] | None = None) -> None:
        self._seconds = seconds
        self._ask = ask or _read_line

    @asynccontextmanager
    async def attempt(self, server: str, *, port: int | None, fixed: bool) -> AsyncGenerator[SignInAttempt]:
        """Prepare an attempt whose redirect address has the given or a random port; listens nowhere, so never fails."""
        del fixed
        yield _ByHand(server, port or 49152 + secrets.randbelow(16384), self._ask, self._seconds)


class _InBrowser:
    def __init__(
        self, server: str, listener: RedirectListener, show: Callable[[str, str], Awaitable[None]], seconds: float
    ) -> None:
        self._server = server
        self._listener = listener
        self._show = show
        self._seconds = seconds

    @property
    def redirect_uri(self) -> str:
        return self._listener.redirect_uri

    async def authorize(self, url: str) -> AuthorizationAnswer:
        """Show the page and wait for the redirect. Raises `SignInFailedError`: refused, not shown, or not in time."""
        state = _state_of(url)
        answers: list[AuthorizationAnswer] = []
        failures: list[SignInFailedError] = []
        with anyio.move_on_after(self._seconds):
            async with anyio.create_task_group() as tasks:

                async def receive() -> None:
                    """Wait for the redirect, then cancel the showing: a browser in the foreground of this
                    terminal may not return before it is closed.
                    """
                    answers.append(await self._listener.receive(state))
                    # A browser in the foreground of this terminal may not return before it is closed.
                    tasks.cancel_scope.cancel()

                tasks.start_soon(receive)
                try:
                    await self._show(self._server, url)
                except SignInFailedError as error:
                    failures.append(error)
                    tasks.cancel_scope.cancel()
        if failures:
            raise failures[0]
        if not answers:
            raise SignInFailedError(f"nobody signed in within {self._seconds:g} s")
        return _accepted(answers[0])


class _ByHand:
    def __init__(self, server: str, port: int, ask: Callable[[], str], seconds: float) -> None:
        self._server = server
        self._port = port
        self._ask = ask
        self._seconds = seconds

    @property
    def redirect_uri(self) -> str:
        return f"http://{_HOST}:{self._port}{PATH}"

    async def authorize(self, url: str) -> AuthorizationAnswer:
        """Print the page's address, and wait for a person to paste the redirect's.

        Raises:
            SignInFailedError: not in time, not the address, of another attempt, or the sign-in was refused.
        """
        state = _state_of(url)
        _print(
            f"{_invitation(self._server, url)}\n"
            f"Then the browser goes to an address that begins with {self.redirect_uri}, where it finds nothing. "
            "Paste that whole address here and press Enter:"
        )
        pasted = ""
        with anyio.move_on_after(self._seconds):
            pasted = await on_daemon_thread(self._ask)
        try:
            answer = read_answer(urlsplit(pasted.strip()[:_MAX_REQUEST]).query)
        except ValueError:
            answer = None
        if answer is None:
            raise SignInFailedError("the pasted text is not the address that the browser was redirected to")
        if not secrets.compare_digest(answer.state.encode("utf-8", "replace"), state.encode()):
            raise SignInFailedError("the pasted address belongs to another attempt to sign in")
        return _accepted(answer)


class RedirectListener:
    """SECURITY: receives the redirect on loopback. Any local process may connect; the first valid answer counts."""

    def __init__(self, listener: anyio.abc.Listener[anyio.abc.SocketStream]) -> None:
        self._listener: Any = listener
        self._port: int = self._listener.extra(SocketAttribute.local_port)  # noqa: S610  # not Django's
        self._connections = 0

    @property
    def redirect_uri(self) -> str:
        """The address to which the browser is redirected."""
        return f"http://{_HOST}:{self._port}{PATH}"

    async def receive(self, state: str) -> AuthorizationAnswer:
        """Serve requests until the first valid answer with this state, and return it; others get a 404. No timeout."""
        found: list[AuthorizationAnswer] = []
        async with anyio.create_task_group() as tasks:

            async def handle(stream: anyio.abc.SocketStream) -> None:
                """Serve one connection; closed at once if too many are open."""
                async with stream:
                    if self._connections >= _MAX_CONNECTIONS:
                        return
                    self._connections += 1
                    try:
                        answer = await self._handle(stream, state)
                    finally:
                        self._connections -= 1
                if answer is not None and not found:
                    found.append(answer)
                    tasks.cancel_scope.cancel()

            await self._listener.serve(handle, tasks)
        return found[0]

    async def aclose(self) -> None:
        """Stop listening."""
        await self._listener.aclose()

    async def _handle(self, stream: anyio.abc.SocketStream, state: str) -> AuthorizationAnswer | None:
        """Read one request within its time and answer it with a page; None if it is not the redirect."""
        answer, head = None, b""
        with anyio.move_on_after(_REQUEST_SECONDS):
            try:
                while b"\r\n\r\n" not in head and len(head) < _MAX_REQUEST:
                    head += await stream.receive(_MAX_REQUEST)
                answer = self._parse(head, state)
                text = _NOT_FOUND if answer is None else _REFUSED if answer.error else _SIGNED_IN
                await stream.send(_response("404 Not Found" if answer is None else "200 OK", text))
            except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError):
                pass  # the browser may close the connection before it has read the response
        return answer

    def _parse(self, request: bytes, state: str) -> AuthorizationAnswer | None:
        """Parse a request's head into the sign-in's answer; None unless host, path and state are ours."""
        lines = request.decode("latin-1").split("\r\n")
        method, _, rest = lines[0].partition(" ")
        hosts = [line.partition(":")[2].strip() for line in lines[1:] if line.lower().startswith("host:")]
        # DNS rebinding: a page elsewhere whose name resolves to loopback sends its own name as host.
        if method != "GET" or hosts not in ([f"{_HOST}:{self._port}"], [f"localhost:{self._port}"]):
            return None
        try:
            parts = urlsplit(rest.partition(" ")[0])
        except ValueError:
            return None
        answer = read_answer(parts.query) if parts.path == PATH else None
        if answer is None or not secrets.compare_digest(answer.state.encode(), state.encode()):
            return None
        return answer


async def open_listener(port: int | None, *, fixed: bool) -> RedirectListener:
    """Listen on loopback: on `port`, or on any free port if that is None or in use and not `fixed`.

    Raises:
        OSError: the fixed port is in use.
    """
    if port is not None:
        try:
            return RedirectListener(await anyio.create_tcp_listener(local_host=_HOST, local_port=port))
        except OSError:
            if fixed:
                raise
    return RedirectListener(await anyio.create_tcp_listener(local_host=_HOST))


def _response(status: str, text: str) -> bytes:
    """Build a complete HTTP response with `text` on an HTML page that runs no script."""
    body = _PAGE.format(text=text).encode()
    head = (
        f"HTTP/1.1 {status}\r\n"
        "Content-Type: text/html; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\n"
        "Content-Security-Policy: default-src 'none'\r\n"
        "Referrer-Policy: no-referrer\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body


def _state_of(url: str) -> str:
    """Check a sign-in page's URL and return its `state` parameter.

    Raises:
        SignInFailedError: the URL is refused, or has no state.
    """
    try:
        check_authorization_url(url)
    except HttpRuleError as error:
        raise SignInFailedError(f"the page to sign in at is refused: {error}") from None
    state = parse_qs(urlsplit(url).query).get("state", [""])[0]
    if not state:
        raise SignInFailedError("the page to sign in at has no state")
    return state


def _invitation(server: str, url: str) -> str:
    where = origin(check_authorization_url(url))
    return f"Server {server!r} asks you to sign in at {where}. Open this page in a browser:\n  {url}"


def _accepted(answer: AuthorizationAnswer) -> AuthorizationAnswer:
    """Return the answer. Raises `SignInFailedError` if it is the authorization server's error."""
    if answer.error:
        raise SignInFailedError(f"the authorization server refused: {for_error(answer.error, limit=80)}")
    return answer


def _print(text: str) -> None:
    """Write a line, escaped for a terminal, to stderr; does nothing if stderr is closed."""
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]  # a parent may have closed it
        sys.stderr.write(for_terminal(text) + "\n")
        sys.stderr.flush()


def _try_to_open(open_page: Callable[[str], object], url: str) -> None:
    """Call `open_page` with the URL; any failure is only printed."""
    try:
        open_page(url)
    except Exception:  # the address was printed
        _print("No browser could be opened here.")


def _open_in_browser(url: str) -> None:
    """Open a URL in the user's browser; may block until a terminal browser is closed."""
    import webbrowser

    webbrowser.open(url)


def _read_line() -> str:
    return sys.stdin.readline(_MAX_REQUEST) if sys.stdin is not None else ""  # pyright: ignore[reportUnnecessaryComparison]
