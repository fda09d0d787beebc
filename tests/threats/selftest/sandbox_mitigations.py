"""Mitigations in the sandbox, at its boundary and in stubs: what the self-test switches off there.

The guest's image is left as it is: it would take minutes to build, and what it does is the guest's word in any case.
"""

from __future__ import annotations

from threats.selftest.switched_off import SwitchedOff, off

_T6 = "test_t06_schema_poisoning.py"
_T13 = "test_t13_identifier_collision.py"
_T15 = "test_t15_schema_bombs.py"
_T31 = "test_t31_resource_exhaustion.py"
_T32 = "test_t32_escape.py"
_T33 = "test_t33_state_bleed.py"
_T33_POOL = "test_t33_instance_pool.py"
_T34 = "test_t34_compile_cache.py"

SANDBOX_MITIGATIONS: tuple[SwitchedOff, ...] = (
    off(
        *("T6", "keep a text from ending its comment", "codegen/escaping.py"),
        *('.replace("*/", "*\\\\/")', ""),
        _T6,
    ),
    off(
        *("T6", "keep a text from ending its docstring", "codegen/escaping.py"),
        *("{_CLOSING_QUOTE.sub(_ESCAPED_QUOTE, safe)}", "{safe}"),
        _T6,
    ),
    off(
        *("T6", "escape string literals", "codegen/escaping.py"),
        '    return f\'"{"".join(map(_typescript_character, text))}"\'\n',
        "    return f'\"{text}\"'\n",
        _T6,
    ),
    off(
        *("T6", "keep a text from being a directive", "codegen/escaping.py"),
        *('return _DIRECTIVE.sub(r"\\1\\\\:", one_line(text))', "return one_line(text)"),
        _T6,
    ),
    off(
        *("T6", "read no declaration in a comment", "check/javascript.py"),
        *('for line in without_comments(text).split("\\n")]', 'for line in text.split("\\n")]'),
        f"{_T6}::test_a_text_that_looks_like_a_declaration_changes_nothing_in_a_check",
    ),
    off(
        *("T12", "give every server a module of its own", "codegen/catalog.py"),
        *("        if module in modules_of:\n", "        if module in ():\n"),
        "test_t12_own_places.py",
    ),
    off(
        *("T13", "leave an exact name to the tool that has it", "codegen/catalog.py"),
        *("owners = keys if len(keys) == 1 else [key for key in keys if key in exact]", "owners = keys[:1]"),
        _T13,
    ),
    off(
        *("T13", "let a pattern allow no tool of another server", "trust/permissions.py"),
        *(
            "        if written in own and not set(_servers_meant(pattern, servers)) - {tool.server}:\n",
            "        if written in own:\n",
        ),
        "test_t13_gated_names.py",
    ),
    off(
        *("T14", "remove hidden characters from stubs", "codegen/escaping.py"),
        *('HIDDEN.sub("", text)', "text"),
        "test_t14_hidden_text.py",
    ),
    off(
        *("T15", "count the parts of a schema", "codegen/read/kinds.py"),
        *("        if self.spent > self._nodes:\n", "        if self.spent > 10**9:\n"),
        f"{_T15}::test_a_bomb_is_bounded_and_harms_nobody",
    ),
    off(
        *("T15", "count the text of a stub", "codegen/read/kinds.py"),
        *("        if self._characters < 0:\n", "        if self._characters < -(10**12):\n"),
        "test_t15_long_texts.py",
    ),
    off(
        *("T17", "rename tools of reserved names", "codegen/catalog.py"),
        *('return f"{name}_" if name in RESERVED_IDENTIFIERS else name', "return name"),
        "test_t17_reserved_members.py",
    ),
    off(
        *("T17", "rename tools with names of Python's own members", "codegen/catalog.py"),
        *('    if name.startswith("__") or not name.strip("_"):\n', '    if not name.strip("_"):\n'),
        "test_t17_reserved_members.py",
    ),
    off(
        *("T30", "check addresses that a guest passes", "boundary/run_state.py"),
        *("        if isinstance(error, OutOfBoundsError):\n", "        if error is None:\n"),
        "test_t30_boundary_abuse.py",
    ),
    off(
        *("T30", "check the length of a frame before reading it", "boundary/run_state.py"),
        *(
            "        if length > self.limits.frame_bytes:\n            return too_large",
            "        if length < 0:\n            return too_large",
        ),
        "test_t30_large_requests.py",
    ),
    off(
        *("T30", "turn what a host function raises into an error of the guest", "boundary/run_state.py"),
        "        except BaseException as error:\n            reply = Reply(failed(error))\n",
        "        except ZeroDivisionError as error:\n            reply = Reply(failed(error))\n",
        "test_t30_host_functions.py",
    ),
    off(
        *("T31", "end a run at its deadline", "boundary/run_state.py"),
        *("            if monotonic() >= self.deadline:\n", "            if monotonic() >= self.deadline + 3:\n"),
        f"{_T31}::test_a_program_that_exhausts_a_resource_is_ended_at_its_limit",
    ),
    off(
        *("T31", "end a run that computes too much", "boundary/run_state.py"),
        *("            elif self.exceeds_cpu_limit():\n", "            elif self.ending is not None:\n"),
        "test_t31_computing.py",
    ),
    off(
        *("T31", "cap a guest's memory", "sandbox/instance.py"),
        *("library.store_limiter(self._store, memory_bytes,", "library.store_limiter(self._store, 16 * memory_bytes,"),
        f"{_T31}::test_what_needs_more_memory_than_a_run_may_use_fails_for_that_alone",
    ),
    off(
        *("T31", "cap what a guest prints", "boundary/run_state.py"),
        *("        kept = min(length, self._room)\n", "        kept = length\n"),
        f"{_T31}::test_a_program_that_exhausts_a_resource_is_ended_at_its_limit",
    ),
    off(
        *("T31", "cap host calls", "boundary/run_state.py"),
        *("        if self._call_count > self.limits.host_calls:\n", "        if self._call_count > 10**9:\n"),
        f"{_T31}::test_a_program_that_exhausts_a_resource_is_ended_at_its_limit",
    ),
    off(
        *("T31", "find a failure's lines without going through all before them", "sandbox/outcome.py"),
        *("_BLOCK = 4096\n", "_BLOCK = 10**9\n"),
        "test_t31_long_programs.py",
    ),
    off(
        *("T32", "keep the host's own clock from the guest", "boundary/run_state.py"),
        "                return max(0, int(self.clock() * 1e9))\n",
        "                import time\n\n                return int(time.time() * 1e9)\n",
        f"{_T32}::test_the_only_wall_clock_is_the_one_that_was_granted",
    ),
    off(
        *("T32", "switch off what no image needs", "sandbox/engine.py"),
        *("        switch_off(config, False)\n", "        switch_off(config, True)\n"),
        f"{_T32}::test_webassembly_that_no_image_needs_is_switched_off",
    ),
    off(
        *("T32", "grant the imports of the list and no more", "boundary/imports.py"),
        '    Import(b"now", (I32,), (I64,), RunState.now, None, True, slice(2, 3)),\n',
        '    Import(b"now", (I32,), (I64,), RunState.now, None, True, slice(2, 3)),\n'
        '    Import(b"open", (I32,), (I32,), RunState.take, None, True, slice(2, 3)),\n',
        _T32,
    ),
    off(
        *("T33", "seed every run anew", "sandbox/execution.py"),
        *("    return os.urandom(32)\n", '    return b"0" * 32\n'),
        _T33,
    ),
    off(
        *("T33", "throw away a guest that was stopped", "sandbox/execution.py"),
        "            if keep and self._keep_instance is not None and self.state.ending is None:\n",
        "            if self._keep_instance is not None:\n",
        f"{_T33}::test_a_session_whose_run_was_stopped_starts_afresh",
    ),
    off(
        *("T33", "compare before guests serve again", "sandbox/instance.py"),
        *("restored and instance.memory.read(0, len(content)) == content", "restored"),
        f"{_T33_POOL}::test_a_system_that_tells_wrong_things_is_found_out",
    ),
    off(
        *("T33", "throw away a guest whose memory has grown", "sandbox/instance.py"),
        *("        if memory.size != size:\n", "        if memory.size < size:\n"),
        _T33_POOL,
    ),
    off(
        *("T33", "give every run handles of its own", "calls/tool_call.py"),
        "        self._held: dict[int, _Held] = {}\n",
        '        self._held: dict[int, _Held] = globals().setdefault("_shared", {})\n',
        "test_t33_handles.py",
    ),
    off(
        *("T34", "refuse code from a directory that others can reach", "files.py"),
        *("    if facts.st_mode & 0o077:\n", "    if facts.st_mode == 0:\n"),
        f"{_T34}::test_nothing_is_loaded_from_a_directory_that_others_can_reach",
    ),
    off(
        *("T34", "refuse code from another user's directory", "files.py"),
        *('        raise UnsafePathError(f"{directory} belongs to another user")\n', "        pass\n"),
        f"{_T34}::test_nothing_is_loaded_from_another_users_directory",
    ),
    off(
        *("T34", "compare compiled code with its name", "sandbox/compile_cache.py"),
        *(
            '    return name == f"{name[:32]}-{_digest(name[:32], content)}{SUFFIX}"\n',
            "    return bool(content or name)\n",
        ),
        f"{_T34}::test_an_entry_that_was_tampered_with_is_not_loaded_but_made_anew",
    ),
    off(
        *("T34", "load the very file that was verified", "sandbox/compile_cache.py"),
        *("yield Entry(path, held if os.path.exists(held) else path)\n", "yield Entry(path, path)\n"),
        f"{_T34}::test_what_was_verified_is_loaded_although_its_name_was_given_to_something_else",
    ),
    off(
        *("T34", "name compiled code by what it was made from", "sandbox/engine.py"),
        *(
            "    return entry_key(image.sha256, build, _SETTINGS, sys.platform, machine)\n",
            "    return entry_key(sys.platform, machine)\n",
        ),
        "test_t34_stale_code.py::test_an_entry_of_another_version_settings_or_image_is_not_loaded",
    ),
)
