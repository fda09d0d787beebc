"""Mitigations at the boundary of the Python guest, which is a component: what the self-test switches off there."""

from __future__ import annotations

from threats.selftest.switched_off import SwitchedOff, off

_T30 = "test_t30_python.py"
_T31 = "test_t31_python.py"
_T32 = "test_t32_python.py"
_T33 = "test_t33_python.py"

COMPONENT_MITIGATIONS: tuple[SwitchedOff, ...] = (
    off(
        *("T30", "end a component whose host function fails", "boundary/component_imports.py"),
        "        except BaseException as error:\n            if run is not None:\n",
        "        except ZeroDivisionError as error:\n            if run is not None:\n",
        _T30,
    ),
    off(
        *("T30", "begin to read no frame that takes too long", "boundary/run_state.py"),
        *("        self.check_time_for(length)\n", ""),
        f"{_T30}::test_a_program_that_abuses_the_boundary_is_contained",
    ),
    off(
        *("T31", "cap a component's memory", "sandbox/component_instance.py"),
        *("limits = (memory_bytes, _UNLIMITED,", "limits = (16 * memory_bytes, _UNLIMITED,"),
        f"{_T31}::test_a_program_that_exhausts_a_resource_is_ended_at_its_limit",
    ),
    off(
        *("T31", "ask for room before a long reply is handed to a component", "boundary/component_imports.py"),
        *("MOST_AT_ONCE = 65_536\n", "MOST_AT_ONCE = 2**40\n"),
        f"{_T31}::test_a_program_that_exhausts_a_resource_is_ended_at_its_limit",
    ),
    off(
        *("T31", "look at the time while a component runs", "sandbox/component_instance.py"),
        "        library.context_set_epoch_deadline(self._context, _EACH_TICK)\n",
        "        library.context_set_epoch_deadline(self._context, 1500)\n",
        f"{_T31}::test_a_program_that_exhausts_a_resource_is_ended_at_its_limit",
    ),
    off(
        *("T32", "grant a component the imports of the list and no more", "boundary/component_imports.py"),
        '{"get-directories": _empty_list},\n',
        '{"get-directories": _empty_list},\n    f"wasi:cli/exit{_WASI}": {"exit": _empty_list},\n',
        f"{_T32}::test_what_is_granted_is_what_was_reviewed_and_no_more",
    ),
    off(
        *("T32", "keep the host's own clock from a component", "boundary/component_imports.py"),
        "    _set_datetime(results[0], run.now(0))\n",
        "    import time\n\n    _set_datetime(results[0], int(time.time() * 1e9) + 0 * run.now(0))\n",
        f"{_T32}::test_the_hosts_time_zone_and_clock_are_not_the_guests",
    ),
    off(
        *("T33", "seed a component's random numbers anew", "boundary/component_imports.py"),
        *("        self._key = hashlib.sha256(frame).digest()\n", '        self._key = b"0" * 32\n'),
        f"{_T33}::test_random_numbers_differ_from_run_to_run",
    ),
)
