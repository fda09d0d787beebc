"""How a person signs in to a server: in a browser, or by hand where there is none."""

from __future__ import annotations

import secrets
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from typing import Any, Protocol, TypeAlias
from urllib.parse import parse_qs, urlsplit

import anyio

from toolbridge.callbacks import callback
from toolbridge.concurrency import on_daemon_thread
from toolbridge.servers.auth.redirect import PATH, AuthorizationAnswer, RedirectListener, open_listener, read_answer
from toolbridge.servers.connection import deadlines_around
from toolbridge.servers.http.ssrf import HttpRuleError, check_authorization_url, origin
from toolbridge.trust.text.sanitise import for_error, for_terminal

# Who may get tokens for a server now: one at a time, and those who wait may come to wait for a person.


class SignInTurns:
    """The turns of one session."""

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._asking = False
        self._in_line: list[Callable[[], None]] = []
        """What makes the deadlines of each who waits stand still."""

    @asynccontextmanager
    async def taking(self) -> AsyncGenerator[None]:
        """Wait for one's turn, and have it."""
        deadlines = deadlines_around()
        with ExitStack() as pauses:

            def stand_still() -> None:
                for deadline in deadlines:
                    pauses.enter_context(deadline.paused())

            self._in_line.append(stand_still)
            try:
                if self._asking:
                    stand_still()
                await self._lock.acquire()
            finally:
                self._in_line.remove(stand_still)
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def asking(self) -> Generator[None]:
        """Whoever has the turn asks a person. The others wait for the same one, also those who came before that."""
        self._asking = True
        for stand_still in self._in_line:
            stand_still()
        try:
            yield
        finally:
            self._asking = False


SIGN_IN_SECONDS = 300.0
_MOST_PASTED = 16 * 1024


class SignInFailedError(Exception):
    """Nobody signed in. The message holds no code, token or state."""


class SignInAttempt(Protocol):
    """One attempt, for as long as it is open."""

    @property
    def redirect_uri(self) -> str:
        """Where the authorization server is to send the browser back to."""
        ...

    async def authorize(self, url: str) -> AuthorizationAnswer:
        """Have a person open this page and sign in.

        Raises:
            SignInFailedError: nobody did.
        """
        ...


class SignIn(Protocol):
    """Asks a person to sign in."""

    def attempt(self, server: str, *, port: int | None, fixed: bool) -> AbstractAsyncContextManager[SignInAttempt]:
        """Prepare for a sign-in to a server.

        Args:
            server: the server's name, to be shown.
            port: the port to which the browser should come back.
            fixed: whether no other port will do.

        Raises:
            SignInFailedError: the port is in use.
        """
        ...


SignInLike: TypeAlias = SignIn | Callable[[str, str], object | Awaitable[object]]
"""A function gets the server's name and the page to sign in at, and has a person open that page. It may end before the
person has signed in; one that raises, or answers False, gives the sign-in up."""


def sign_in_of(given: SignInLike) -> SignIn:
    """How a host has people sign in: an object, or a function in its place. May raise a MisuseError: it is neither."""
    if isinstance(given, type) or not hasattr(given, "attempt"):
        return _SignInByFunction(callback("sign_in", given, "sign_in", "server", "url"))
    return given  # pyright: ignore[reportReturnType]


class BrowserSignIn:
    """Opens the page in the person's browser, and waits on this machine for it to come back."""

    def __init__(self, *, seconds: float = SIGN_IN_SECONDS, open_page: Callable[[str], object] | None = None) -> None:
        self._seconds = seconds
        self._open_page = open_page or _open_in_browser

    async def _show(self, server: str, url: str) -> None:
        _say(_invitation(server, url))
        await on_daemon_thread(lambda: _quietly(self._open_page, url))

    @asynccontextmanager
    async def attempt(self, server: str, *, port: int | None, fixed: bool) -> AsyncGenerator[SignInAttempt]:
        """Listen for the browser."""
        try:
            listener = await open_listener(port, fixed=fixed)
        except OSError:
            raise SignInFailedError(f"port {port}, to which the browser is to come back, is in use") from None
        try:
            yield _InBrowser(server, listener, self._show, self._seconds)
        finally:
            with anyio.CancelScope(shield=True):
                await listener.aclose()


class _SignInByFunction(BrowserSignIn):
    """Hands the page to a function of the host."""

    def __init__(self, function: Callable[..., Awaitable[Any]]) -> None:
        super().__init__()
        self._function = function

    async def _show(self, server: str, url: str) -> None:
        try:
            answer = await self._function(server, url)
        except Exception as error:
            raise SignInFailedError(f"the host's sign_in failed with {type(error).__name__}") from error
        if answer is False:
            raise SignInFailedError("the host's sign_in gave it up")


class HeadlessSignIn:
    """Shows the page's address, and asks for the address that the browser ends up at, wherever that browser is."""

    def __init__(self, *, seconds: float = SIGN_IN_SECONDS, ask: Callable[[], str] | None = None) -> None:
        self._seconds = seconds
        self._ask = ask or _read_line

    @asynccontextmanager
    async def attempt(self, server: str, *, port: int | None, fixed: bool) -> AsyncGenerator[SignInAttempt]:
        """Nothing listens, so any port will do."""
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
        state = _state_of(url)
        answers: list[AuthorizationAnswer] = []
        given_up: list[SignInFailedError] = []
        with anyio.move_on_after(self._seconds):
            async with anyio.create_task_group() as tasks:

                async def wait() -> None:
                    answers.append(await self._listener.answer(state))
                    # A browser in the foreground of this terminal may not return before it is closed.
                    tasks.cancel_scope.cancel()

                tasks.start_soon(wait)
                try:
                    await self._show(self._server, url)
                except SignInFailedError as error:
                    given_up.append(error)
                    tasks.cancel_scope.cancel()
        if given_up:
            raise given_up[0]
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
        return f"http://127.0.0.1:{self._port}{PATH}"

    async def authorize(self, url: str) -> AuthorizationAnswer:
        state = _state_of(url)
        _say(
            f"{_invitation(self._server, url)}\n"
            f"Then the browser goes to an address that begins with {self.redirect_uri}, where it finds nothing. "
            "Paste that whole address here and press Enter:"
        )
        pasted = ""
        with anyio.move_on_after(self._seconds):
            pasted = await on_daemon_thread(self._ask)
        try:
            answer = read_answer(urlsplit(pasted.strip()[:_MOST_PASTED]).query)
        except ValueError:
            answer = None
        if answer is None:
            raise SignInFailedError("what was pasted is not the address that the browser was sent back to")
        if not secrets.compare_digest(answer.state.encode("utf-8", "replace"), state.encode()):
            raise SignInFailedError("what was pasted belongs to another attempt to sign in")
        return _accepted(answer)


def _state_of(url: str) -> str:
    """The state that the answer must know.

    Raises:
        SignInFailedError: it is no page to send a person to.
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
    if answer.error:
        raise SignInFailedError(f"the authorization server refused: {for_error(answer.error, limit=80)}")
    return answer


def _say(text: str) -> None:
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]  # a parent may have closed it
        sys.stderr.write(for_terminal(text) + "\n")
        sys.stderr.flush()


def _quietly(open_page: Callable[[str], object], url: str) -> None:
    """A browser that can't be opened costs nothing: the address was shown."""
    try:
        open_page(url)
    except Exception:
        _say("No browser could be opened here.")


def _open_in_browser(url: str) -> None:
    import webbrowser

    webbrowser.open(url)


def _read_line() -> str:
    return sys.stdin.readline(_MOST_PASTED) if sys.stdin is not None else ""  # pyright: ignore[reportUnnecessaryComparison]
