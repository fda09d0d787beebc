"""Mitigations in configuration, trust and describing: what the self-test switches off there."""

from __future__ import annotations

from threats.selftest.switched_off import SwitchedOff, off

_T1 = "test_t01_command_injection.py"
_T4 = "test_t04_secrets_everywhere.py"
_T10 = "test_t10_approval_tampering.py"
_T11_RUNTIME = "test_t11_through_the_runtime.py"
_T11 = "test_t11_rug_pull.py"
_T21 = "test_t21_confused_deputy.py"
_T22 = "test_t22_exfiltration.py"
_T24 = "test_t24_command_hijack.py"
_T25 = "test_t25_project_trust.py"
_T25_SOURCES = "test_t25_sources.py"
_T26_TASKS = "test_t26_tasks.py"
_T35 = "test_t35_secrets_on_disk.py"

TRUST_MITIGATIONS: tuple[SwitchedOff, ...] = (
    off(
        *("T1", "refuse what was not approved", "servers/lifecycle.py"),
        *("if approval.approved is not True:", "if approval.approved is False and not approval.reason:"),
        f"{_T1}::test_an_unapproved_server_is_never_started",
    ),
    off(
        *("T1", "refuse every server where there is no approver", "trust/approval/approver.py"),
        'return Approval(False, f"no approver was given, and nobody approved {request.digest}")',
        "return Approval(True)",
        f"{_T1}::test_an_unapproved_server_is_never_started",
    ),
    off(
        *("T1", "ask again when the arguments change", "config/config.py"),
        *('"args": list(server.args),', '"args": [],'),
        f"{_T1}::test_whatever_is_changed_after_approval_asks_again",
    ),
    off(
        *("T1", "ask again after a revocation", "trust/approval/store.py"),
        *('if last.decision == "revoked":', 'if last.decision == "never":'),
        f"{_T1}::test_a_revoked_server_is_not_started_again",
    ),
    off(
        *("T1", "close what was revoked elsewhere", "servers/manager.py"),
        *("if start is None or await approver.still_approves(start.request):", "if True:"),
        "test_t01_revoked_elsewhere.py::test_a_server_is_closed_before_the_next_run",
    ),
    off(
        *("T2", "say that a server is not sandboxed", "trust/approval/approvers.py"),
        *("with YOUR permissions. It is NOT sandboxed.", "with your permissions."),
        "test_t02_full_access.py",
    ),
    off(
        *("T2", "keep the warning where it is seen", "trust/approval/approvers.py"),
        *(
            '    lines += ["", _set_in(warning_line(request.server), width), ""]\n',
            "    lines = ['', warning_line(request.server), *lines]\n",
        ),
        "test_t02_full_access.py",
    ),
    off(
        *("T4", "mask secrets", "trust/secrets.py"),
        *("    for begin, end in _merged(sorted(_spans(text, found))):\n", "    for begin, end in ():\n"),
        *(
            f"{_T4}::test_the_library_shows_logs_and_keeps_no_secret",
            f"{_T4}::test_a_server_that_is_reached_by_http_gives_no_secret_away",
        ),
    ),
    off(
        *("T3", "label the words of a server that did not start", "calls/tool_call.py"),
        *("        if may_quote(error):\n", "        if False:\n"),
        "test_t03_response_instructions.py::test_what_a_server_said_when_it_could_not_be_started_is_labelled_too",
    ),
    off(
        *("T11", "pin what a program's servers list", "trust/pins/pins.py"),
        *('if place is None and server.transport != "in_process":', "if False:"),
        *(
            f"{_T11_RUNTIME}::test_a_tool_of_a_server_made_in_code_that_changes_is_blocked_without_a_lock",
            f"{_T11_RUNTIME}::test_what_the_audit_warns_of_is_kept_from_models_also_where_a_program_made_the_server",
        ),
    ),
    off(
        *("T12", "pin nothing unseen that the audit warns of", "trust/pins/pins.py"),
        "withheld = await _in_thread(lambda: first.withheld)",
        "withheld = ()",
        "test_t12_shadowing.py::test_orders_about_another_servers_tool_are_not_pinned_unseen",
    ),
    off(
        *("T4", "mask secrets in base64", "trust/secrets.py"),
        *("*_in_base64(raw), *_in_base64(wide[:-1])}", "*()}"),
        "test_t04_short_secrets.py",
    ),
    off(
        *("T4", "mask secrets in URLs", "trust/secrets.py"),
        *("    forms = {secret, *urls, ", "    forms = {secret, "),
        f"{_T4}::test_the_library_shows_logs_and_keeps_no_secret",
    ),
    off(
        *("T4", "mask secrets in JSON", "trust/secrets.py"),
        *("    for _ in range(2):\n", "    for _ in ():\n"),
        "test_t04_short_secrets.py",
    ),
    off(
        *("T4", "mask truncated secrets", "trust/secrets.py"),
        *("        if len(part) >= _LEAST_TRUNCATED:\n", "        if False:\n"),
        "test_t04_short_secrets.py",
    ),
    off(
        *("T4", "mask the bytes of a secret in a result", "calls/results.py"),
        *("change_list=self._masked_bytes", "change_list=None"),
        "test_t04_short_secrets.py",
    ),
    off(
        *("T4", "keep values out of the repr of an environment", "config/references.py"),
        *("ResolvedEnvironment(env={sorted(self.env)!r}", "ResolvedEnvironment(env={dict(self.env)!r}"),
        f"{_T4}::test_the_library_shows_logs_and_keeps_no_secret",
    ),
    off(
        *("T7", "refuse reserved names", "config/values.py"),
        *("if twin_key(lower) in {twin_key(reserved) for reserved in RESERVED_NAMES}:", "if not lower:"),
        "test_t07_namespace_collision.py",
    ),
    off(
        *("T7", "refuse twins that differ by - and _", "config/values.py"),
        *('return name.replace("-", "_")', "return name"),
        "test_t07_namespace_collision.py",
    ),
    off(
        *("T7", "refuse names with __", "config/values.py"),
        *("if SEPARATOR in name:", "if not name:"),
        "test_t07_namespace_collision.py",
    ),
    off(
        *("T9", "cap the number of servers", "config/fields.py"),
        *("    if count > most:\n", "    if count > most * 1000:\n"),
        "test_t09_proliferation.py::test_one_server_too_many_is_an_error_that_names_the_count",
    ),
    off(
        *("T10", "check the seal of the approvals", "trust/approval/sealed_store.py"),
        'if not isinstance(seal, str) or not hmac.compare_digest(seal.encode("utf-8", "replace"), expected.encode()):',
        "if expected == seal == 7:",
        f"{_T10}::test_an_altered_store_approves_nothing",
    ),
    off(
        *("T10", "refuse a file that others can write", "files.py"),
        *("if facts.st_mode & 0o077 or facts.st_nlink != 1:", "if facts.st_nlink == 0:"),
        f"{_T10}::test_a_store_that_others_could_have_written_approves_nothing",
    ),
    off(
        *("T10", "refuse a directory that others can write", "files.py"),
        *("    if facts.st_mode & 0o077:\n", "    if facts.st_mode == 0:\n"),
        f"{_T10}::test_a_store_that_others_could_have_written_approves_nothing",
    ),
    off(
        *("T10", "refuse a directory above that others can write", "files.py"),
        *("if facts.st_mode & stat.S_IWOTH and not facts.st_mode & stat.S_ISVTX:", "if facts.st_mode == 0:"),
        f"{_T10}::test_a_store_below_a_directory_that_others_can_write_approves_nothing",
    ),
    off(
        *("T10", "refuse links", "files.py"),
        *("os.O_RDONLY | os.O_NOFOLLOW", "os.O_RDONLY"),
        f"{_T10}::test_a_store_that_others_could_have_written_approves_nothing",
    ),
    off(
        *("T11", "block a tool that changed", "trust/pins/admission.py"),
        *("elif pin is not None and pin.digest != listed.digest:", "elif pin is not None and pin.name != listed.name:"),
        _T11,
    ),
    off(
        *("T11", "keep a person's no", "trust/pins/admission.py"),
        *("        elif refused:\n", "        elif False:\n"),
        f"{_T11}::test_a_person_who_says_no_leaves_nothing_to_call",
    ),
    off(
        *("T25", "accept nothing because a lock pins it", "trust/pins/admission.py"),
        *("        elif decision is None and not trusted:\n", "        elif decision is None and not is_pinned:\n"),
        f"{_T25}::test_a_lock_that_was_cloned_accepts_nothing_that_the_audit_warns_of",
    ),
    off(
        *("T11", "hide a tool that is new", "trust/pins/admission.py"),
        '            blocked.append(BlockedTool(tool.name, "new", None, listed, was_refused=refused))\n',
        "            tools.append(tool)\n",
        _T11,
    ),
    off(
        *("T11", "check the tool again before a call that waited is sent", "servers/manager.py"),
        "if tool not in slot.exposed_names():  # now: it may have changed while the call waited\n",
        "if False:\n",
        _T11,
    ),
    off(
        *("T26", "read the lock again for nobody but the host", "runtime.py"),
        "    async def _follow(self, *, reread_pins: bool = False) -> None:\n",
        "    async def _follow(self, *, reread_pins: bool = True) -> None:\n",
        "test_t26_control_plane.py::test_a_lock_that_a_tool_wrote_is_not_read_before_the_host_reloads",
    ),
    off(
        *("T26", "keep revoked servers from tasks", "composition.py"),
        *("            revoked |= self._above.revoked\n", "            revoked |= frozenset()\n"),
        f"{_T26_TASKS}::test_a_task_has_no_server_that_was_taken_away_from_the_runtime_that_it_was_made_of",
    ),
    off(
        *("T26", "switch MCP off in tasks too", "composition.py"),
        *(" and (self._above is None or self._above.is_on)\n", "\n"),
        f"{_T26_TASKS}::test_a_task_has_no_server_that_was_taken_away_from_the_runtime_that_it_was_made_of",
    ),
    off(
        *("T26", "close what is taken away in open tasks", "runtime.py"),
        "                tasks.start_soon(partial(runtime._manager.reload, runtime.config, reread_pins=reread_pins))\n",
        "                pass\n",
        f"{_T26_TASKS}::test_a_task_has_no_server_that_was_taken_away_from_the_runtime_that_it_was_made_of",
    ),
    off(
        *("T26", "take what is configured no more from tasks too", "composition.py"),
        *("        own = self._own_or_from_above()\n", "        own = self.own\n"),
        f"{_T26_TASKS}::test_what_is_configured_no_more_is_gone_from_open_tasks_too",
    ),
    off(
        *("T12", "tell the audit of other servers' tools", "trust/audit/detector.py"),
        *("    if others is not None and others.servers:\n", "    if others is None:\n"),
        "test_t12_shadowing.py",
    ),
    off(
        *("T12", "audit what a server calls itself", "trust/audit/detector.py"),
        *("    for place, text in about.items():\n", "    for place, text in ():\n"),
        "test_t12_shadowing.py::test_it_is_found_in_what_a_server_calls_itself",
    ),
    off(
        *("T14", "show all that is pinned of a tool", "trust/pins/review.py"),
        *("return [*_head(pin, width), *_schema_lines(pin, width)]", "return _head(pin, width)"),
        "test_t14_hidden_text.py::test_whoever_pins_a_tool_is_shown_what_models_read_of_its_parameters_and_results",
    ),
    off(
        *("T14", "report hidden text", "trust/audit/detector.py"),
        *("    for sign in obfuscations(text):\n", "    for sign in ():\n"),
        "test_t14_hidden_text.py",
    ),
    off(
        *("T16", "read only the ends of a long text", "trust/audit/detector.py"),
        *("LONGEST_READ = 24_000\n", "LONGEST_READ = 24_000_000\n"),
        "test_t16_host_patterns.py::test_the_audit_reads_100_kb_of_anything_in_a_tenth_of_a_second",
    ),
    off(
        *("T20", "write out what a terminal would obey", "trust/sanitise.py"),
        *("    return match[0] if match[1] else written_out(match[0])\n", "    return match[0]\n"),
        "test_t20_terminal_injection.py",
    ),
    off(
        *("T20", "treat what goes to a terminal as foreign", "cli/terminal.py"),
        *("shown = for_terminal(text) if stream.isatty() else text", "shown = text"),
        "test_t20_terminal_injection.py",
    ),
    off(
        *("T21", "let deny win over allow", "trust/permissions.py"),
        *("return max(verdicts, key=", "return min(verdicts, key="),
        _T21,
    ),
    off(
        *("T21", "let annotations only raise the level", "trust/permissions.py"),
        "    return max(verdicts, key=",
        '    if annotations_of(tool.definition.annotations).get("readOnlyHint") is True:\n        return DEFAULT\n'
        "    return max(verdicts, key=",
        _T21,
    ),
    off(
        *("T21", "grant one tool of one server at a time", "trust/gate.py"),
        "            answers = self._answers[tool.server, tool.name] = _Answers(server)\n",
        '            answers = self._answers.setdefault(("", ""), _Answers(server))\n'
        "            self._answers[tool.server, tool.name] = answers\n",
        _T21,
    ),
    off(
        *("T22", "remember what a run has touched", "trust/gate.py"),
        *("        entry.labels |= labels\n", "        entry.labels = frozenset()\n"),
        _T22,
    ),
    off(
        *("T22", "note a call that is decided at once", "trust/gate.py"),
        *("            self._flows.add_call(tool, policy.labels)\n", ""),
        _T22,
    ),
    off(
        *("T22", "settle nothing that a flow could still forbid", "trust/gate.py"),
        *(" and not any(sides_of(rule)[1] in labels for rule in config.flows)", ""),
        _T22,
    ),
    off(
        *("T22", "refuse the third leg", "trust/gate.py"),
        *("            if len(found) == len(sources):\n", "            if len(found) > len(sources):\n"),
        _T22,
    ),
    off(
        *("T23", "start the very program that was approved", "servers/lifecycle.py"),
        "        launch = Launch(start.executable, server.args, environment.env, start.directory, "
        "environment.secrets)\n",
        "        from toolbridge.servers.stdio.launch import find_executable\n\n"
        "        found = find_executable(server, environment.env.get('PATH', ''))\n"
        "        launch = Launch(found, server.args, environment.env, server.cwd)\n",
        "test_t23_time_of_use.py",
    ),
    off(
        *("T24", "hash the program that a command leads to", "config/config.py"),
        *('"executable": executable, **facts', '"executable": None, **facts'),
        _T24,
    ),
    off(
        *("T24", "hash the file that a link in the project leads to", "config/config.py"),
        *('**({} if target is None else {"target": target})', "**{}"),
        f"{_T24}::test_a_command_of_the_project_that_becomes_a_link_elsewhere_is_shown_and_hashed",
    ),
    off(
        *("T24", "leave the current directory out of the search", "servers/stdio/launch.py"),
        *("if os.path.isabs(entry)]", "]"),
        _T24,
    ),
    off(
        *("T24", "point out variables that load code", "trust/approval/warnings.py"),
        '        (_LOADS_CODE, "can make it run other code than its own"),\n',
        "",
        _T24,
    ),
    off(
        *("T25", "tell origins apart when looking for an approval", "trust/approval/store.py"),
        "if (each.origin, each.name) == (server.origin, server.name)]",
        "if each.name == server.name]",
        _T25,
    ),
    off(
        *("T35", "mask values in what an approval keeps", "trust/approval/approver.py"),
        'return " ".join(f"${{{name}}}" for name in names) if names and bare else MASK',
        "return text",
        f"{_T35}::test_an_approval_keeps_no_value",
    ),
    off(
        *("T35", "mask options in what an approval keeps", "config/secret_values.py"),
        *(
            '            yield argument, "", argument\n',
            '            yield argument, "", ""\n',
        ),
        f"{_T35}::test_an_approval_keeps_no_value",
    ),
    off(
        *("T35", "mask arguments in the journal", "events.py"),
        *(
            "    if len(text) <= enough:\n        return masked(text, secrets)\n",
            "    if len(text) <= enough:\n        return text\n",
        ),
        f"{_T35}::test_listings_lock_stubs_and_journal_hold_no_value",
    ),
    off(
        *("T35", "mask secrets in what a server lists", "servers/discovery.py"),
        *("            hidden = masked(text, self._secrets)\n", "            hidden = text\n"),
        f"{_T35}::test_listings_lock_stubs_and_journal_hold_no_value",
    ),
    off(
        *("T25", "bind an approval to the plugin", "sources/plugins.py"),
        *('origin=Origin("plugin", plugin)', 'origin=Origin("plugin", "any")'),
        f"{_T25_SOURCES}::test_a_plugins_server_is_not_approved_by_anybody_elses_approval",
    ),
    off(
        *("T25", "import no plugin that is denied", "sources/plugins.py"),
        *("        elif refusal:\n", "        elif refusal and problem:\n"),
        f"{_T25_SOURCES}::test_a_denied_plugin_runs_no_code_of_its_own",
    ),
    off(
        *("T25", "let a file's profiles speak of its own servers only", "config/profiles.py"),
        *("if base is None or base.origin != profile.origin:", "if base is None:"),
        f"{_T25_SOURCES}::test_a_users_override_does_not_go_to_a_repositorys_server_that_took_the_name",
    ),
    off(
        *("T25", "take back what was allowed of a name that is taken over", "sources/merge.py"),
        *("                self._replaced.add(name)\n", "                self._replaced.discard(name)\n"),
        f"{_T25_SOURCES}::test_a_name_that_is_taken_over_keeps_its_labels_and_loses_what_was_allowed_of_it",
    ),
    off(
        *("T35", "mask what is no reference in a printed configuration", "sources/merge.py"),
        *("without_literals(value, MASK)", "value or without_literals(value, MASK)"),
        "test_t35_dry_run.py",
    ),
)
