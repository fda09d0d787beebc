"""Mitigations in `toolbridge serve`: what the self-test switches off there."""

from __future__ import annotations

from threats.selftest.switched_off import SwitchedOff, off

_T1 = "test_t01_through_serving.py"
_T21 = "test_t21_through_serving.py"
_UNATTENDED = "test_t21_unattended.py"
_T23 = "test_t23_served_questions.py"
_T27 = "test_t27_serving.py"
_FAIR = "test_t27_fairness.py"
_T29 = "test_t29_served_questions.py"
_T33 = "test_t33_served_clients.py"

SERVE_MITIGATIONS: tuple[SwitchedOff, ...] = (
    off(
        *("T1", "take only a clear yes for one", "serve/elicitation.py"),
        *(
            '    return answer.action == "accept" and answer.content.get("agree") is True\n',
            "    return bool(answer)\n",
        ),
        f"{_T1}::test_no_tool_starts_a_server_without_a_yes",
    ),
    off(
        *("T21", "allow nothing because a person can't be asked again", "serve/elicitation.py"),
        *(
            "        if caller is None or not caller.has_elicitation:\n            if use.only_if_asked:\n",
            "        if caller is None or not caller.can_ask:\n            if use.only_if_asked:\n",
        ),
        f"{_T21}::test_a_person_who_keeps_saying_no_is_never_overruled",
    ),
    off(
        *("T21", "take a client that can't ask for one that can't", "serve/elicitation.py"),
        *("        return caller is not None and caller.has_elicitation\n", "        return True or caller\n"),
        f"{_UNATTENDED}::test_a_client_without_elicitation_has_what_was_chosen",
    ),
    off(
        *("T21", "make no call unattended that was not chosen", "trust/permissions.py"),
        *('    if config.unattended == "allow" or permission.rule', "    if config.unattended or permission.rule"),
        f"{_UNATTENDED}::test_without_a_host_that_answers_only_these_calls_are_made",
    ),
    off(
        *("T21", "believe no read that its server calls destructive", "trust/permissions.py"),
        *(' is True and hints.get("destructiveHint") is not True\n    if config', " is True\n    if config"),
        f"{_UNATTENDED}::test_without_a_host_that_answers_only_these_calls_are_made",
    ),
    off(
        *("T21", "forget what was allowed for a run that is over", "serve/run_code.py"),
        *("limits=limits, keeps_answers=False)", "limits=limits)"),
        f"{_T21}::test_what_was_allowed_for_one_run_is_asked_again_in_the_next_of_its_session",
    ),
    off(
        *("T23", "pin nothing because a person can't be asked again", "serve/elicitation.py"),
        *(
            'not caller.has_elicitation:\n            return "unseen"\n',
            "not caller.can_ask:\n            return True\n",
        ),
        f"{_T23}::test_tools_that_nobody_was_shown_are_not_pinned_when_a_call_has_asked_too_often",
    ),
    off(
        *("T27", "compare the Host of a request", "serve/http_guard.py"),
        *(
            "        if len(hosts) != 1 or _text(hosts[0]).lower() not in self.hosts:\n",
            "        if len(hosts) > 100:\n",
        ),
        f"{_T27}::test_a_name_that_was_bound_to_loopback_is_not_ours",
    ),
    off(
        *("T27", "compare the Origin of a request", "serve/http_guard.py"),
        *("            if _text(value).lower() not in self.origins:\n", "            if not value:\n"),
        f"{_T27}::test_a_page_of_another_origin_is_refused",
    ),
    off(
        *("T27", "ask for the token", "serve/http_guard.py"),
        *("        if self.token is not None and not _has_token(headers, self.token):\n", "        if not headers:\n"),
        f"{_T27}::test_without_the_token_nothing_is_served",
    ),
    off(
        *("T27", "bound the length of a body that says how long it is", "serve/http_guard.py"),
        *("int(value[:20]) > most):\n", "int(value[:20]) > 10**18):\n"),
        f"{_T27}::test_a_body_that_is_too_long_is_not_read",
    ),
    off(
        *("T27", "bound the length of a body that does not say", "serve/http_guard.py"),
        *("            if len(body) > most:\n", "            if len(body) > 10**9:\n"),
        f"{_T27}::test_a_body_that_is_too_long_is_not_read",
    ),
    off(
        *("T27", "bound the time of a body", "serve/http_guard.py"),
        *("    with within:\n", "    with anyio.move_on_after(1000):\n"),
        f"{_T27}::test_a_body_that_comes_too_slowly_is_given_up",
    ),
    off(
        *("T27", "bound the time of headers", "serve/http.py"),
        *("self.loop.call_later(limits.header_seconds,", "self.loop.call_later(1000 * limits.header_seconds,"),
        f"{_T27}::test_headers_that_come_too_slowly_are_given_up",
    ),
    off(
        *("T27", "bound the time of a client that does not read", "serve/http.py"),
        *("call_later(limits.send_seconds,", "call_later(1000 * limits.send_seconds,"),
        f"{_FAIR}::test_a_client_that_does_not_read_its_response_is_hung_up_on",
    ),
    off(
        *("T27", "bound the requests under way, and leave half of them for others", "serve/fairness.py"),
        *("        return self._of[holder] < room\n", "        return self._of[holder] < room + 10_000\n"),
        f"{_T27}::test_one_request_too_many_is_told_to_come_back",
    ),
    off(
        *("T27", "count what all sessions of an address hold", "serve/fairness.py"),
        *("if holder.peer == LOOPBACK else", "if holder.peer else"),
        f"{_FAIR}::test_however_many_sessions_an_address_opens_it_leaves_half",
    ),
    off(
        *("T27", "take loopback for one address", "serve/clients.py"),
        *("    if address.is_loopback:\n", "    if not address:\n"),
        f"{_FAIR}::test_one_host_is_one_peer",
    ),
    off(
        *("T27", "leave half of the connections for other addresses", "serve/http.py"),
        *("if not self._shares.may_take(holder) and", "if self._shares.free <= 0 and"),
        f"{_FAIR}::test_one_address_leaves_half_of_the_connections",
    ),
    off(
        *("T27", "count by a session that we opened, not by its name", "serve/http.py"),
        *('else ("peer", ""))', 'else ("peer", headers.get(SESSION_HEADER, "")))'),
        f"{_T27}::test_one_request_too_many_is_told_to_come_back",
    ),
    off(
        *("T27", "shed bodies that have yet to arrive", "serve/http_guard.py"),
        *("        if oldest is None:\n", "        if oldest is None or is_meant:\n"),
        f"{_FAIR}::test_made_up_session_ids_are_their_peers",
    ),
    off(
        *("T27", "leave each client one call", "serve/http_guard.py"),
        *("        return is_call and client not in", "        return not is_call and client not in"),
        f"{_FAIR}::test_each_client_may_always_have_one_call",
    ),
    off(
        *("T27", "evict idle HTTP sessions", "serve/http.py"),
        *("while (victim := self.sessions.victim(new=new)) is not None:\n", "while (victim := None) is not None:\n"),
        f"{_FAIR}::test_the_least_recently_used_idle_session_is_evicted",
    ),
    off(
        *("T27", "evict idle connections", "serve/http.py"),
        *("            if oldest is not None:\n", "            if oldest is self:\n"),
        f"{_FAIR}::test_idle_connections_keep_nobody_out",
    ),
    off(
        *("T27", "count guests by their client's address", "serve/run_code.py"),
        *("if each.peer == owner.peer]", "if each.owner == owner.key]"),
        f"{_FAIR}::test_one_address_has_four_guests_through_however_many_http_sessions",
    ),
    off(
        *("T29", "show no form with something hidden in its answers", "serve/elicitation.py"),
        *("        if for_form(text, self._secrets, limit=_MOST_WORDS) != text:\n", "        if text is None:\n"),
        f"{_T29}::test_a_form_that_cannot_be_shown_as_it_is_is_not_shown",
    ),
    off(
        *("T29", "clean the words of a form", "serve/elicitation.py"),
        *("self._counted(for_form(value, self._secrets, limit=_MOST_WORDS))", "self._counted(value)"),
        f"{_T29}::test_secrets_and_hidden_characters_of_a_question_are_not_shown",
    ),
    off(
        *("T29", "decline a question that may be another client's", "serve/elicitation.py"),
        *("        if len({caller.client for caller in callers}) != 1:\n", "        if not callers:\n"),
        f"{_T29}::test_of_two_clients_neither_is_asked",
    ),
    off(
        *("T33", "keep a session to the client that opened it", "serve/run_code.py"),
        *("            if found is None or found.owner != owner.key:\n", "            if found is None:\n"),
        f"{_T33}::test_another_clients_session_is_as_unknown_as_none",
    ),
    off(
        *("T33", "end the sessions only of a client that there was", "serve/http.py"),
        *(
            '        if kind == "session":  # only',
            '        if method == "DELETE":\n            self._service.forget(("http", ""))\n'
            '        if kind == "session":  # only',
        ),
        f"{_T33}::test_nobody_ends_what_others_have_by_naming_it",
    ),
    off(
        *("T33", "believe no name that a client of 2026-07-28 makes up", "serve/clients.py"),
        *(
            "    if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:\n",
            "    if version in HANDSHAKE_PROTOCOL_VERSIONS and not headers:\n",
        ),
        f"{_T33}::test_a_name_that_a_modern_client_makes_up_is_nobodys",
    ),
    off(
        *("T33", "seal the state of a call for this call", "serve/service.py"),
        *(
            "        self.middleware.append(RequestStateBoundary(security, default_audience=NAME))\n",
            "        del security\n",
        ),
        f"{_T33}::test_a_state_of_one_call_continues_no_other",
    ),
)
