"""Our edits to the pinned engine source, applied at build time.

Each edit finds one short anchor that occurs exactly once; a new engine version that moves one
fails the build instead of silently building something else. The inserted calls are implemented in
`shim/program_syntax.c`, `shim/guest_location.c` and `shim/native.c`.
"""

from __future__ import annotations

from typing import NamedTuple


class Patch(NamedTuple):
    """Puts `before` in front of the anchor; with `replace`, in its place."""

    why: str
    anchor: str
    before: str
    replace: bool = False


PATCHES = (
    Patch(
        why="A run's first arena of each block size is small, so that a small run dirties few pages",
        anchor="#define JS_ARENA_SIZE              4096",
        before="static size_t toolbridge_arena_size(int);\n#define JS_ARENA_SIZE toolbridge_arena_size(block_size_idx)",
        replace=True,
    ),
    Patch(
        why="The last arena of a block size is kept when it is empty: the next block would need a new one at once",
        anchor="if (unlikely(ar->n_used_blocks == 0)) {",
        before="if (unlikely(ar->n_used_blocks == 0) && ar->free_link.next != ar->free_link.prev) {",
        replace=True,
    ),
    Patch(
        why="Arenas are not listed (only tearing the engine down needs that): a new one would dirty an old one's page",
        anchor="list_add(&ar->link, &rt->arena_state.arena_list[block_size_idx]);",
        before="init_list_head(&ar->link);",
        replace=True,
    ),
    Patch(
        why="A token's column is where it begins",
        anchor="s->token.col_num = max_int(1, s->mark - s->eol);",
        before="s->token.col_num = (int)(s->token.ptr - s->token.line_start) + 1;",
        replace=True,
    ),
    Patch(
        why="A call's place is its function's, not its last argument's: remember it …",
        anchor="call_type = FUNC_CALL_NORMAL;\n    switch(s->token.val) {",
        before="int call_line = s->token.line_num, call_column = s->token.col_num;\n    ",
    ),
    Patch(
        why="… for `new`",
        anchor="emit_source_loc(s);\n            if (js_parse_postfix_expr(s, 0))",
        before="call_line = s->token.line_num, call_column = s->token.col_num;\n            ",
    ),
    Patch(
        why="… for a method",
        anchor="if (s->token.val == TOK_PRIVATE_NAME) {\n                /* private class field */\n"
        "                if (get_prev_opcode(fd) == OP_get_super) {",
        before="call_line = s->token.line_num, call_column = s->token.col_num;\n            ",
    ),
    Patch(
        why="… and use it",
        anchor="emit_func_call:\n                switch(opcode) {",
        before="emit_func_call:\n                emit_source_loc_at(s, call_line, call_column);\n"
        "                switch(opcode) {",
        replace=True,
    ),
    Patch(
        why="Declare what the interpreter calls",
        anchor="#define DEFINE_GLOBAL_LEX_VAR (1 << 7)",
        before=(
            "static JSValue toolbridge_import(JSContext *, JSValueConst, JSValueConst);\n"
            "static void toolbridge_forget_variable(JSContext *, JSAtom);\n"
            "static void toolbridge_note_throw(JSContext *, JSValueConst);\n"
            "static bool strip_sources;\n"
        ),
    ),
    Patch(
        why="The prelude's functions don't keep their source: it is large, and private",
        anchor="b->source_len = fd->source_len;",
        before=(
            "if (strip_sources) { js_free(ctx, fd->source); b->source = fd->source = NULL; fd->source_len = 0; }\n    "
        ),
    ),
    Patch(
        why="Declare what the parser calls",
        anchor="static __exception int js_parse_postfix_expr(JSParseState *s, int parse_flags);",
        before=(
            "static int toolbridge_begin_program(JSParseState *);\n"
            "static int toolbridge_regexp_error(JSParseState *);\n"
            "static bool toolbridge_is_program(JSFunctionDef *);\n"
            "static int toolbridge_parse_return(JSParseState *);\n"
            "static int toolbridge_parse_import(JSParseState *);\n"
            "static int toolbridge_parse_export(JSParseState *);\n"
            "static void toolbridge_end_program(JSFunctionDef *);\n"
        ),
    ),
    Patch(
        why="An invalid regular expression is a syntax error with a place",
        anchor="/* add the line number info */\n                backtrace_flags = 0;",
        before="return toolbridge_regexp_error(s);\n                ",
    ),
    Patch(
        why="A program may return a value",
        anchor='js_parse_error(s, "return not in a function");',
        before="if (!toolbridge_parse_return(s)) break;",
        replace=True,
    ),
    Patch(
        why="A program may import and export",
        anchor="} else if (s->token.val == TOK_EXPORT && fd->module) {",
        before=(
            "} else if (s->token.val == TOK_EXPORT && toolbridge_is_program(fd)) {\n"
            "        if (toolbridge_parse_export(s)) return -1;\n"
            "    } else if (s->token.val == TOK_IMPORT && toolbridge_is_program(fd) &&\n"
            "               ((tok = peek_token(s, false)) != '(' && tok != '.')) {\n"
            "        if (toolbridge_parse_import(s)) return -1;\n"
            "    "
        ),
    ),
    Patch(
        why="A program's imports are done before anything else",
        anchor="while (s->token.val != TOK_EOF) {",
        before="if (toolbridge_begin_program(s)) return -1;\n    ",
    ),
    Patch(
        why="A program's default export is its value",
        anchor="if (has_using_be) {\n        int label_catch = fd->scopes[fd->body_scope].using_label_catch;",
        before="toolbridge_end_program(fd);\n    ",
    ),
    Patch(
        why="import() answers from our registry",
        anchor="val = js_dynamic_import(ctx, sp[-2], sp[-1]);",
        before="val = toolbridge_import(ctx, sp[-2], sp[-1]);",
        replace=True,
    ),
    Patch(
        why="A thrown value that is no Error has no stack: the place is noted",
        anchor="JS_Throw(ctx, *--sp);\n            goto exception;\n\n        CASE(OP_throw_error):",
        before="sf->cur_pc = pc;\n            toolbridge_note_throw(ctx, sp[-1]);\n            ",
    ),
    Patch(
        why="A session's program may declare a name again",
        anchor="if (JS_CheckDefineGlobalVar(ctx, atom, flags))",
        before="toolbridge_forget_variable(ctx, atom);\n                ",
    ),
    Patch(
        why="… also one that was a function before",
        anchor="if (s->eval_type != JS_EVAL_TYPE_GLOBAL)\n                flags |= JS_PROP_CONFIGURABLE;",
        before="flags |= JS_PROP_CONFIGURABLE;",
        replace=True,
    ),
)


def patched(source: str) -> str:
    """The engine source with every patch applied.

    Raises:
        ValueError: an anchor occurs not exactly once (another engine version?).
    """
    for patch in PATCHES:
        found = source.count(patch.anchor)
        if found != 1:
            raise ValueError(f'patch "{patch.why}": its anchor occurs {found} times instead of once: {patch.anchor!r}')
        inserted = patch.before if patch.replace else patch.before + patch.anchor
        source = source.replace(patch.anchor, inserted)
    return source
