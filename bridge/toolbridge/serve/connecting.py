"""Connects a server for one caller, which other callers may want at the same time.

An attempt to connect is shared. Whether to start the server, each caller's own person is asked; whether to take its
tools, the one whose caller began. So another client's person may be the one who is silent.
"""

from __future__ import annotations

from typing import Literal

import anyio

from toolbridge import Runtime, ServerError, ServerNotApprovedError
from toolbridge.serve.caller import current_caller
from toolbridge.serve.open_questions import OpenQuestions


class AskedElsewhereError(ServerNotApprovedError):
    """The person of another client is being asked about a server's tools, and has not answered in time."""

    def __init__(self, server: str) -> None:
        super().__init__(server, "waits for the answer of another client's person. Try again later")


class Connecting:
    """How our tools connect servers."""

    def __init__(self, runtime: Runtime, questions: OpenQuestions) -> None:
        self._runtime = runtime
        self._questions = questions

    async def connect(
        self, server: str, seconds: float, *, place: Literal["make_room", "in_turn"] = "make_room"
    ) -> None:
        """Connect a server, and wait so long, at most, for the persons of other clients.

        Raises:
            AskedElsewhereError: it took longer.
            ServerError: it can't be connected.
        """
        caller = current_caller()
        if caller is None:
            await self._runtime.servers.connect(server, place=place)
            return
        with self._questions.patience(server, caller.client, seconds) as scope:
            await self._runtime.servers.connect(server, place=place)
        if scope.cancelled_caught:
            raise AskedElsewhereError(server)

    async def connect_all(self, servers: tuple[str, ...], seconds: float) -> None:
        """Connect what a program names. What can't be connected, the program hears of when it imports the module.

        Raises:
            AskedElsewhereError: of one of them, when all others are connected or can't be.
        """
        elsewhere: list[AskedElsewhereError] = []

        async def connect(server: str) -> None:
            try:
                await self.connect(server, seconds)
            except AskedElsewhereError as error:
                elsewhere.append(error)
            except ServerError:
                return

        if len(servers) == 1:
            await connect(servers[0])
        else:
            async with anyio.create_task_group() as tasks:
                for server in servers:
                    tasks.start_soon(connect, server)
        if elsewhere:
            raise elsewhere[0]
