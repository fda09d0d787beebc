"""Mitigations in connections to servers and on the path of a call: what the self-test switches off there."""

from __future__ import annotations

from threats.selftest.switched_off import SwitchedOff, off

_T5 = "test_t05_crash_or_hang.py"
_T8 = "test_t08_stdio_injection.py"
_T9 = "test_t09_proliferation.py"
_T18 = "test_t18_endless_listing.py"
_T19 = "test_t19_unframed_output.py"
_T27 = "test_t27_http.py"
_T29 = "test_t29_server_initiated.py"

SERVER_MITIGATIONS: tuple[SwitchedOff, ...] = (
    off(
        *("T3", "say which servers' words are in a result", "calls/run.py"),
        *("tuple({**self._servers, **calls.servers})", "()"),
        "test_t03_response_instructions.py",
    ),
    off(
        *("T5", "bound the time of connecting and listing", "servers/lifecycle.py"),
        "    scope.deadline = anyio.current_time() + slot.connect_seconds(connector.limits)\n",
        "    scope.deadline = anyio.current_time() + 10 * slot.connect_seconds(connector.limits)\n",
        f"{_T5}::test_connecting_and_listing_time_out",
    ),
    off(
        *("T5", "bound the time of a call", "servers/manager.py"),
        "secrets, seconds = slot.secrets, slot.server.call_timeout or self._limits.call_seconds\n",
        "secrets, seconds = slot.secrets, 10.0 * (slot.server.call_timeout or self._limits.call_seconds)\n",
        f"{_T5}::test_a_call_times_out",
    ),
    off(
        *("T5", "refuse the fourth respawn", "servers/lifecycle.py"),
        *("slot.start_count > connector.limits.respawns:", "slot.start_count > 100 * connector.limits.respawns:"),
        f"{_T5}::test_the_fourth_respawn_is_refused",
    ),
    off(
        *("T5", "give up a server that is stuck", "servers/connection.py"),
        *("            self._wakeup.request_probe()\n", "            pass\n"),
        f"{_T5}::test_a_server_that_is_stuck_for_good_is_given_up_and_started_again",
    ),
    off(
        *("T8", "drop lines that are no messages", "servers/jsonrpc.py"),
        *('        if message.get("jsonrpc") != "2.0":\n', '        if message.get("jsonrpc") == "9.9":\n'),
        f"{_T8}::test_an_injection_breaks_no_session_and_becomes_no_result",
    ),
    off(
        *("T8", "choose ids that can't be foreseen", "servers/jsonrpc.py"),
        "            self._last_id = (self._last_id + self._step) % _IDS\n",
        "            self._last_id = (self._last_id + 1) % _IDS\n",
        f"{_T8}::test_an_injection_breaks_no_session_and_becomes_no_result",
    ),
    off(
        *("T9", "cap connections", "servers/pool.py"),
        *("        while len(self._holders) >= self._limit():\n", "        while len(self._holders) >= 1000:\n"),
        f"{_T9}::test_connections_that_are_being_opened_count_too",
    ),
    off(
        *("T9", "count connections until they are gone", "servers/pool.py"),
        "        while len(self._holders) >= self._limit():\n",
        "        while sum(not holder.closing for holder in self._holders) >= self._limit():\n",
        f"{_T9}::test_a_server_that_a_reload_closes_holds_its_place_until_it_is_gone",
    ),
    off(
        *("T9", "cap the tools of a listing", "servers/discovery.py"),
        *("            if self._listed == self._limits.tools:\n", "            if self._listed == -1:\n"),
        f"{_T9}::test_servers_that_list_too_much_are_cut_all_at_once_and_a_modest_one_is_served",
    ),
    off(
        *("T9", "cap calls under way", "servers/registry.py"),
        *("anyio.Semaphore(limits.calls_in_flight, fast_acquire=True)", "anyio.Semaphore(10_000, fast_acquire=True)"),
        f"{_T9}::test_no_more_calls_are_under_way_at_once_than_may_be",
    ),
    off(
        *("T16", "refuse patterns that may take for ever", "schema/compile.py"),
        *("    if degree:\n        raise _RefusedError\n", "    degree = 0\n"),
        "test_t16_host_patterns.py",
    ),
    off(
        *("T16", "bound the work of a pattern by the length of the text", "schema/compile.py"),
        *("_MOST_WORK = 1_000_000\n", "_MOST_WORK = 10**10\n"),
        "test_t16_host_patterns.py",
    ),
    off(
        *("T18", "notice a cursor that comes again", "servers/discovery.py"),
        *("        if cursor in self._cursors:\n", "        if cursor in ():\n"),
        f"{_T18}::test_a_listing_without_end_is_cut",
    ),
    off(
        *("T18", "wait for a burst of changes to end", "servers/connection.py"),
        "            with anyio.move_on_after(REFRESH_SECONDS):\n                await ended.wait()\n",
        "",
        f"{_T18}::test_a_flood_of_changes_costs_few_listings",
    ),
    off(
        *("T19", "drop a line while it is too long", "servers/stdio/process.py"),
        *("        if len(self._begun) > self._max_bytes:\n", "        if len(self._begun) > 2**34:\n"),
        f"{_T19}::test_an_answer_past_the_cap_is_an_error_at_once",
    ),
    off(
        *("T19", "keep the end of stderr only", "servers/stdio/process.py"),
        *("        del self._tail[:-_KEPT_BYTES]\n", ""),
        f"{_T19}::test_a_flood_on_stderr_is_read_and_thrown_away",
    ),
    off(
        *("T22", "leave toolbridge out of its own servers", "config/parse.py"),
        *("if server is not None and starts_toolbridge(", "if server is not None and not server.command and print("),
        "test_t22_nesting.py::test_toolbridge_is_left_out_of_its_own_servers",
    ),
    off(
        *("T22", "refuse a run inside a run", "cli/server_options.py"),
        *("    if MARK in os.environ:\n", "    if not MARK:\n"),
        "test_t22_nesting.py::test_commands_that_call_tools_look_for_the_mark",
    ),
    off(
        *("T22", "know toolbridge by its name in the handshake", "servers/connection.py"),
        *("info.name == CLIENT.name:", "info.name is CLIENT:"),
        "test_t22_nesting.py::test_our_own_address_does_not_help",
    ),
    off(
        *("T22", "count a call that was sent, also where its answer can't be fetched", "servers/http/streamable.py"),
        *("            raise ServerDisconnectedError(self._http.server, problem) from None\n", "            raise\n"),
        "test_t22_exfiltration.py::test_a_call_that_was_sent_counts_whatever_becomes_of_its_answer",
    ),
    off(
        *("T26", "give every handle a number that nobody can guess", "calls/tool_call.py"),
        *(
            "                identity = secrets.randbelow(_MOST_IDENTITY)\n",
            "                identity = len(self._held) + 1\n",
        ),
        "test_t26_control_plane.py",
    ),
    off(
        *("T26", "import modules of configured servers only", "calls/run.py"),
        *(
            "        server = servers.get(specifier)\n",
            "        server = servers.get(specifier, next(iter(servers.values()), None))\n",
        ),
        "test_t26_control_plane.py",
    ),
    off(
        *("T27", "keep redirects to their origin", "servers/http/ssrf.py"),
        *("    if not same_origin(sent.url, target) or target.userinfo:\n", "    if target.userinfo:\n"),
        f"{_T27}::test_a_redirect_does_not_take_credentials_to_another_origin",
    ),
    off(
        *("T27", "never reach metadata services", "servers/http/ssrf.py"),
        *("    if address.is_link_local:\n", "    if address.is_multicast:\n"),
        f"{_T27}::test_a_metadata_address_is_not_reached_in_any_spelling",
    ),
    off(
        *("T27", "keep tokens to the URL that they were given for", "servers/auth/tokens.py"),
        *("    source = json.dumps([path, server", "    source = json.dumps([server"),
        f"{_T27}::test_a_token_for_one_path_is_not_sent_to_another_on_the_same_host",
    ),
    off(
        *("T27", "use no token that was given for another resource", "servers/auth/tokens.py"),
        *(
            "        if kept is None or kept.resource is None or _covers(",
            "        if kept is None or _covers.__name__ or (",
        ),
        f"{_T27}::test_a_token_for_one_path_is_not_sent_to_another_on_the_same_host",
    ),
    off(
        *("T27", "send secrets encrypted only", "servers/http/ssrf.py"),
        *('    if url.scheme == "http" and not is_this_machine(host) and (', '    if url.scheme == "ftp" and ('),
        f"{_T27}::test_secrets_are_not_sent_unencrypted_to_another_machine",
    ),
    off(
        *("T27", "refuse line breaks in headers", "servers/http/ssrf.py"),
        '    if "\\r" in value or "\\n" in value or "\\0" in value:\n',
        '    if value == "\\0":\n',
        f"{_T27}::test_a_header_that_would_be_two_is_refused_and_not_repeated",
    ),
    off(
        *("T27", "refuse names that were made to lead here", "servers/http/ssrf.py"),
        *("    if reach > nearest:\n", "    if reach > Reach.LOOPBACK:\n"),
        f"{_T27}::test_a_name_that_was_made_to_lead_to_this_machine_does_not_reach_it",
    ),
    off(
        *("T28", "find processes that left their group", "servers/stdio/process_tree.py"),
        "        found |= {pid: one for pid, one in table.items() if pid not in found and self._is_marked(one)}\n",
        "",
        "test_t28_orphans.py::test_who_a_server_started_goes_when_it_is_closed",
    ),
    off(
        *("T28", "signal those outside of the group", "servers/stdio/process_tree.py"),
        *("            if member.group != self._leader and _same", "            if member.group == -1 and _same"),
        "test_t28_orphans.py::test_who_a_server_started_goes_when_it_is_closed",
    ),
    off(
        *("T29", "decline what nobody handles", "servers/requests.py"),
        'return {"action": "decline"} if method == "elicitation/create" else None',
        'return {"action": "accept", "content": {}}',
        _T29,
    ),
    off(
        *("T29", "announce only what is handled", "servers/inbound.py"),
        *("    if requests.sample is not None:\n", "    if True:\n"),
        _T29,
    ),
    off(
        *("T29", "say which server asks", "servers/inbound.py"),
        *("request = ElicitationRequest(server, raw", 'request = ElicitationRequest("", raw'),
        _T29,
    ),
)
