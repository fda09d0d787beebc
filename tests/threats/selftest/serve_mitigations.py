"""Mitigations in `toolbridge serve`: what the self-test switches off there."""

from __future__ import annotations

from threats.selftest.switched_off import SwitchedOff, off

_T1 = "test_t01_through_serving.py"
_T21 = "test_t21_through_serving.py"
_T23 = "test_t23_served_questions.py"
_T27 = "test_t27_serving.py"
_T29 = "test_t29_served_questions.py"
_T33 = "test_t33_served_clients.py"

SERVE_MITIGATIONS: tuple[SwitchedOff, ...] = (
    off(
        *("T1", "take only a clear yes for one", "serve/questions.py"),
        *(
            '    return answer.action == "accept" and answer.content.get("agree") is True\n',
            "    return bool(answer)\n",
        ),
        f"{_T1}::test_no_tool_starts_a_server_without_a_yes",
    ),
    off(
        *("T21", "allow nothing because a person can't be asked again", "serve/asking.py"),
        *(
            "    if caller is None or not caller.has_elicitation:\n        if use.only_if_asked:\n",
            "    if caller is None or not caller.can_ask:\n        if use.only_if_asked:\n",
        ),
        f"{_T21}::test_a_person_who_keeps_saying_no_is_never_overruled",
    ),
    off(
        *("T21", "forget what was allowed for a run that is over", "serve/running.py"),
        *("limits=limits, keeps_answers=False)", "limits=limits)"),
        f"{_T21}::test_what_was_allowed_for_one_run_is_asked_again_in_the_next_of_its_session",
    ),
    off(
        *("T23", "pin nothing because a person can't be asked again", "serve/asking.py"),
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
        *("T27", "bound the length of a body that says how long it is", "serve/http_body.py"),
        *("int(value[:20]) > most):\n", "int(value[:20]) > 10**18):\n"),
        f"{_T27}::test_a_body_that_is_too_long_is_not_read",
    ),
    off(
        *("T27", "bound the length of a body that does not say", "serve/http_body.py"),
        *("            if len(body) > most:\n", "            if len(body) > 10**9:\n"),
        f"{_T27}::test_a_body_that_is_too_long_is_not_read",
    ),
    off(
        *("T27", "bound the time of a body", "serve/http_body.py"),
        *("    with anyio.move_on_after(seconds):\n", "    with anyio.move_on_after(100 * seconds):\n"),
        f"{_T27}::test_a_body_that_comes_too_slowly_is_given_up",
    ),
    off(
        *("T27", "bound the time of headers", "serve/http_server.py"),
        *("self.loop.call_later(header_seconds,", "self.loop.call_later(1000 * header_seconds,"),
        f"{_T27}::test_headers_that_come_too_slowly_are_given_up",
    ),
    off(
        *("T27", "bound the requests under way", "serve/http_app.py"),
        *("return _BUSY if self._requests >= self._limits.requests else None", "return None"),
        f"{_T27}::test_one_request_too_many_is_told_to_come_back",
    ),
    off(
        *("T27", "leave half of the requests for others", "serve/http_app.py"),
        *("if self._requests_of[client] >= share_of(self._limits.requests):\n", "if not client:\n"),
        f"{_T27}::test_half_of_the_requests_are_left_for_others",
    ),
    off(
        *("T29", "show no form with something hidden in its answers", "serve/server_forms.py"),
        *("        if for_form(text, self._secrets, limit=_MOST_WORDS) != text:\n", "        if text is None:\n"),
        f"{_T29}::test_a_form_that_cannot_be_shown_as_it_is_is_not_shown",
    ),
    off(
        *("T29", "clean the words of a form", "serve/server_forms.py"),
        *("self._counted(for_form(value, self._secrets, limit=_MOST_WORDS))", "self._counted(value)"),
        f"{_T29}::test_secrets_and_hidden_characters_of_a_question_are_not_shown",
    ),
    off(
        *("T29", "decline a question that may be another client's", "serve/asking.py"),
        *("        if len({caller.client for caller in callers}) != 1:\n", "        if not callers:\n"),
        f"{_T29}::test_of_two_clients_neither_is_asked",
    ),
    off(
        *("T33", "keep a session to the client that opened it", "serve/guest_sessions.py"),
        *("            if found is None or found.owner != owner:\n", "            if found is None:\n"),
        f"{_T33}::test_another_clients_session_is_as_unknown_as_none",
    ),
    off(
        *("T33", "end the sessions only of a client that there was", "serve/http_app.py"),
        *('"DELETE" and statuses == [_DELETED]:\n', '"DELETE":\n'),
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
        *("T33", "seal the state of a call for this call", "serve/server.py"),
        *(
            "        self.middleware.append(RequestStateBoundary(security, default_audience=NAME))\n",
            "        del security\n",
        ),
        f"{_T33}::test_a_state_of_one_call_continues_no_other",
    ),
)
