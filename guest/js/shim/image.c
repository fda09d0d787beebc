/* The JavaScript guest image: the engine and our shim, compiled as one unit.
 *
 * One unit, because the program syntax (import, export and return in the program a
 * run executes) needs the parser's own functions, which the engine keeps static. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <stddef.h>

#include "engine.c" /* the pinned engine's quickjs.c after guest/js/patches.py */

#include "program_imports.c"
#include "program_syntax.c"
#include "memory.c"
#include "random.c"
#include "imports.c"
#include "json_text.c"
#include "json_number.c"
#include "json_reader.c"
#include "host.c"
#include "guest_location.c"
#include "pending_calls.c"
#include "native.c"
#include "outcome.c"
#include "event_loop.c"
#include "run.c"
#include "prepare.c"
#include "no_wasi.c"
