"""T23, through `toolbridge serve`: what the person was shown is what is kept and started."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp_types import ElicitRequestFormParams, ElicitResult

from serve.serving import ERAS, Era, Person, client_of, run, service_of, yes
from servers.fault_servers import fault_server
from toolbridge import Config
from toolbridge.serve.service import Service

pytestmark = pytest.mark.anyio

ECHO = 'require("host:mcp-echo").echo({ text: "hello" })'


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("era", ERAS)
async def test_a_configuration_that_changes_while_the_person_reads_is_asked_about_anew(
    tmp_path: Path, era: Era
) -> None:
    services: list[Service] = []
    other = fault_server("echo", "ask-ping", "--added-while-you-read")

    class SlowReader(Person):
        async def __call__(self, context: object, params: object) -> ElicitResult:
            assert isinstance(params, ElicitRequestFormParams)
            self.asked.append(params)
            if len(self.asked) == 1:
                await services[0].runtime.reload(Config.of(other))
            return yes(params)

    person = SlowReader()
    async with service_of(tmp_path, fault_server("echo", "ask-ping")) as service:
        services.append(service)
        async with client_of(service, era, person) as client:
            result = await run(client, ECHO)
            assert result["value"] == "hello"
    assert len(person.asked) == 2
    assert "--added-while-you-read" not in person.messages[0]
    assert "--added-while-you-read" in person.messages[1]
