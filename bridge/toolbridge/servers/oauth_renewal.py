"""Renewing tokens without a person, once for all who wait for it, and to the end.

Many refresh tokens count once: whoever is cancelled between the request and the answer, or renews beside another
process, has lost the sign-in. So a renewal is a task of the session and not of the request that began it, and holds a
lock meanwhile.
"""

from __future__ import annotations

import logging

import anyio
import anyio.abc

from toolbridge.servers.oauth_flow import OAuthFlow
from toolbridge.servers.oauth_kept import KeptSignIn
from toolbridge.servers.sign_in import SignInFailedError

_LONG_AGO = 1.0
# When the channel is closed: an authorization server that answers at all does so in this time.
_LAST_SECONDS = 5.0
_LOGGER = logging.getLogger("toolbridge")


class Renewals:
    """The renewals of one session, of which one at most is under way."""

    def __init__(self, flow: OAuthFlow, kept: KeptSignIn, tasks: anyio.abc.TaskGroup) -> None:
        self.problem = ""
        """Why the last one failed."""
        self._flow = flow
        self._kept = kept
        self._tasks = tasks
        self._over: anyio.Event | None = None
        self._scope = anyio.CancelScope()

    async def settled(self) -> None:
        """Until none is under way that somebody began and did not wait for."""
        if self._over is not None:
            await self._over.wait()

    async def renew(self) -> bool:
        """Renew the tokens; whether that worked. Cancelling this only ends the waiting."""
        over, scope = anyio.Event(), anyio.CancelScope(shield=True)
        self._tasks.start_soon(self._run, scope, over)
        self._over, self._scope = over, scope
        await over.wait()
        return not self.problem and self._kept.token is not None

    def hurry(self) -> None:
        """The channel closes: one that is under way has little time left."""
        self._scope.deadline = anyio.current_time() + _LAST_SECONDS

    async def _run(self, scope: anyio.CancelScope, over: anyio.Event) -> None:
        try:
            with scope:
                async with self._kept.exclusive():
                    self.problem = ""
                    if not await self._kept.adopt_news() or self._kept.ends_soon:
                        await self._exchange()
            if scope.cancelled_caught:
                self.problem = "the connection was closed meanwhile"
        except Exception as error:
            self.problem = "it failed"
            _LOGGER.warning("A sign-in was not renewed (%s)", type(error).__name__)
        finally:
            self._over = None
            over.set()

    async def _exchange(self) -> None:
        context = self._flow.context
        before = context.current_tokens
        if not context.can_refresh_token():
            self.problem = "there is no refresh token"
            return
        context.token_expiry_time = _LONG_AGO  # it was refused, whatever it says
        try:
            await self._flow.run(None)
            self.problem = self._flow.refusal
        except SignInFailedError as error:
            self.problem = str(error)
        if self._flow.refused_for_good:
            await self._kept.forget(before)
            if self._kept.token is not None:
                self.problem = ""
        elif self.problem or self._kept.token is None:
            # The authorization server may be back later, and still know these.
            self.problem = self.problem or "the authorization server answered badly"
            context.current_tokens, context.token_expiry_time = before, _LONG_AGO
