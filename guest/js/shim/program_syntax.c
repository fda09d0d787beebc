/* Program syntax: `import`, `export` and `return` at the top level of a run's program.
 *
 * A program is a strict, asynchronous global script, so that its declarations outlive the
 * run (sessions) and its last expression is known. Three things a script lacks are added
 * here, where the parser knows exactly what is a statement and what is not:
 *   - `import … from "host:x"` binds constants, by asking the module registry;
 *   - `export default …` sets the run's value; other exports are plain declarations;
 *   - `return …` ends the run with a value.
 * guest/js/patches.py says where the engine calls these. */

/* The default export of the program being compiled, if it has one. */
static struct {
    JSFunctionDef *program;
    int variable;
} default_export;

static bool toolbridge_is_program(JSFunctionDef *fd)
{
    return fd->parent == NULL && fd->is_eval && fd->eval_type == JS_EVAL_TYPE_GLOBAL &&
           fd->func_kind == JS_FUNC_ASYNC;
}

/* stack: value → { value }; wrapped so that a promise can be returned as it is */
static void emit_wrapped_value(JSParseState *s)
{
    emit_op(s, OP_object);
    emit_op(s, OP_swap);
    emit_op(s, OP_define_field);
    emit_atom(s, JS_ATOM_value);
}

static int toolbridge_parse_return(JSParseState *s)
{
    if (!toolbridge_is_program(s->cur_func))
        return js_parse_error(s, "return not in a function");
    if (next_token(s))
        return -1;
    if (s->token.val != ';' && s->token.val != '}' && s->token.val != TOK_EOF && !s->got_lf) {
        if (js_parse_expr(s))
            return -1;
    } else {
        emit_op(s, OP_undefined);
    }
    emit_wrapped_value(s);
    emit_return(s, true);
    return js_parse_expect_semi(s);
}

/* ---- import ------------------------------------------------------------------------ */

enum { MAX_IMPORTS = 1024 };

typedef struct {
    JSAtom local, imported;
} ImportBinding;

/* Emits the call that fetches one export: OP_import with a string in place of the options
 * object answers at once with that export ("*" is the module itself). */
static void emit_import_value(JSParseState *s, JSAtom specifier, JSAtom imported)
{
    emit_op(s, OP_push_atom_value);
    emit_atom(s, specifier);
    emit_op(s, OP_push_atom_value);
    emit_atom(s, imported);
    emit_source_loc(s);
    emit_op(s, OP_import);
}

static int add_binding(JSParseState *s, ImportBinding *bindings, int *count, JSAtom local, JSAtom imported)
{
    if (*count >= MAX_IMPORTS)
        return js_parse_error(s, "too many imports in one statement");
    if (local == JS_ATOM_arguments || local == JS_ATOM_eval)
        return js_parse_error(s, "invalid import binding");
    bindings[*count].local = JS_DupAtom(s->ctx, local);
    bindings[*count].imported = JS_DupAtom(s->ctx, imported);
    (*count)++;
    return 0;
}

static int parse_binding_name(JSParseState *s, JSAtom *name)
{
    if (!token_is_ident(s->token.val) || s->token.u.ident.is_reserved)
        return js_parse_error(s, "identifier expected");
    *name = JS_DupAtom(s->ctx, s->token.u.ident.atom);
    return next_token(s);
}

/* { a, b as c, "d-e" as f } */
static int parse_named_imports(JSParseState *s, ImportBinding *bindings, int *count)
{
    JSContext *ctx = s->ctx;
    if (next_token(s))
        return -1;
    while (s->token.val != '}') {
        JSAtom imported, local = JS_ATOM_NULL;
        bool reserved = false;
        int failed;
        if (token_is_ident(s->token.val)) {
            reserved = s->token.u.ident.is_reserved;
            imported = JS_DupAtom(ctx, s->token.u.ident.atom);
        } else if (s->token.val == TOK_STRING) {
            reserved = true;
            imported = JS_ValueToAtom(ctx, s->token.u.str.str);
            if (imported == JS_ATOM_NULL)
                return -1;
        } else {
            return js_parse_error(s, "identifier or string expected");
        }
        failed = next_token(s);
        if (!failed && token_is_pseudo_keyword(s, JS_ATOM_as)) {
            failed = next_token(s) || parse_binding_name(s, &local);
        } else if (!failed && reserved) {
            failed = js_parse_error(s, "'as' and a name expected");
        } else if (!failed) {
            local = JS_DupAtom(ctx, imported);
        }
        if (!failed)
            failed = add_binding(s, bindings, count, local, imported);
        JS_FreeAtom(ctx, local);
        JS_FreeAtom(ctx, imported);
        if (failed)
            return -1;
        if (s->token.val != ',')
            break;
        if (next_token(s))
            return -1;
    }
    return js_parse_expect(s, '}');
}

static int parse_import_clause(JSParseState *s, ImportBinding *bindings, int *count)
{
    JSAtom local = JS_ATOM_NULL;
    int failed;
    if (s->token.val == TOK_IDENT) {
        failed = parse_binding_name(s, &local) || add_binding(s, bindings, count, local, JS_ATOM_default);
        JS_FreeAtom(s->ctx, local);
        if (failed)
            return -1;
        if (s->token.val != ',')
            return 0;
        if (next_token(s))
            return -1;
    }
    if (s->token.val == '*') {
        if (next_token(s))
            return -1;
        if (!token_is_pseudo_keyword(s, JS_ATOM_as))
            return js_parse_error(s, "expecting 'as'");
        local = JS_ATOM_NULL;
        failed = next_token(s) || parse_binding_name(s, &local) ||
                 add_binding(s, bindings, count, local, JS_ATOM__star_);
        JS_FreeAtom(s->ctx, local);
        return failed ? -1 : 0;
    }
    if (s->token.val == '{')
        return parse_named_imports(s, bindings, count);
    return js_parse_error(s, "import clause expected");
}

static int parse_specifier(JSParseState *s, JSAtom *specifier)
{
    JSValue attributes;
    int failed;
    if (s->token.val != TOK_STRING)
        return js_parse_error(s, "module specifier expected: a string such as \"host:mcp-weather\"");
    *specifier = JS_ValueToAtom(s->ctx, s->token.u.str.str);
    if (*specifier == JS_ATOM_NULL || next_token(s))
        return -1;
    failed = js_parse_with_clause(s, &attributes);
    JS_FreeValue(s->ctx, attributes);
    return failed;
}

static int toolbridge_parse_import(JSParseState *s)
{
    JSContext *ctx = s->ctx;
    ImportBinding *bindings = js_malloc(ctx, MAX_IMPORTS * sizeof *bindings);
    JSAtom specifier = JS_ATOM_NULL;
    int count = 0, failed = -1;
    if (!bindings)
        return -1;
    if (next_token(s))
        goto done;
    if (s->token.val == TOK_STRING) {
        if (parse_specifier(s, &specifier))
            goto done;
        emit_import_value(s, specifier, JS_ATOM__star_);
        emit_op(s, OP_drop);
    } else {
        if (parse_import_clause(s, bindings, &count))
            goto done;
        if (!token_is_pseudo_keyword(s, JS_ATOM_from)) {
            js_parse_error(s, "from clause expected");
            goto done;
        }
        if (next_token(s) || parse_specifier(s, &specifier))
            goto done;
        if (!count) { /* import {} from "…" */
            emit_import_value(s, specifier, JS_ATOM__star_);
            emit_op(s, OP_drop);
        }
        for (int i = 0; i < count; i++) {
            if (define_var(s, s->cur_func, bindings[i].local, JS_VAR_DEF_CONST) < 0)
                goto done;
            emit_import_value(s, specifier, bindings[i].imported);
            emit_op(s, OP_scope_put_var_init);
            emit_atom(s, bindings[i].local);
            emit_u16(s, s->cur_func->scope_level);
        }
    }
    failed = js_parse_expect_semi(s);
done:
    for (int i = 0; i < count; i++) {
        JS_FreeAtom(ctx, bindings[i].local);
        JS_FreeAtom(ctx, bindings[i].imported);
    }
    JS_FreeAtom(ctx, specifier);
    js_free(ctx, bindings);
    return failed;
}

/* ---- export ------------------------------------------------------------------------ */

/* stack: value → (empty); the value becomes the run's, whatever expressions follow */
static int emit_default_export(JSParseState *s)
{
    JSFunctionDef *fd = s->cur_func;
    if (default_export.program == fd)
        return js_parse_error(s, "a program has at most one default export");
    default_export.variable = add_var(s->ctx, fd, JS_ATOM__default_);
    if (default_export.variable < 0)
        return -1;
    default_export.program = fd;
    emit_op(s, OP_put_loc);
    emit_u16(s, default_export.variable);
    return 0;
}

/* `function name` or `async function* name`: the name, or JS_ATOM_NULL for an anonymous one */
static int peek_function_name(JSParseState *s, JSAtom *name)
{
    JSParsePos start;
    *name = JS_ATOM_NULL;
    js_parse_get_pos(s, &start);
    if (s->token.val != TOK_FUNCTION && next_token(s)) /* skips `async` */
        return -1;
    if (next_token(s))
        return -1;
    if (s->token.val == '*' && next_token(s))
        return -1;
    if (token_is_ident(s->token.val))
        *name = JS_DupAtom(s->ctx, s->token.u.ident.atom);
    return js_parse_seek_token(s, &start);
}

static int parse_export_default(JSParseState *s)
{
    JSAtom name = JS_ATOM_NULL;
    int failed;
    if (s->token.val == TOK_FUNCTION ||
        (token_is_pseudo_keyword(s, JS_ATOM_async) && peek_token(s, true) == TOK_FUNCTION)) {
        if (peek_function_name(s, &name))
            return -1;
        if (name != JS_ATOM_NULL) { /* declared as well as exported */
            failed = js_parse_function_decl(s, JS_PARSE_FUNC_STATEMENT, JS_FUNC_NORMAL, JS_ATOM_NULL,
                                            s->token.ptr, s->token.line_num, s->token.col_num);
            if (!failed) {
                emit_op(s, OP_scope_get_var);
                emit_atom(s, name);
                emit_u16(s, s->cur_func->scope_level);
                failed = emit_default_export(s);
            }
            JS_FreeAtom(s->ctx, name);
            return failed;
        }
        return js_parse_assign_expr(s) || emit_default_export(s) ? -1 : 0;
    }
    if (s->token.val == TOK_CLASS)
        return js_parse_assign_expr(s) || emit_default_export(s) ? -1 : 0;
    if (js_parse_assign_expr(s) || emit_default_export(s))
        return -1;
    return js_parse_expect_semi(s);
}

/* export { a, b as c };  names are not exported to anywhere, but they must parse */
static int skip_export_list(JSParseState *s)
{
    while (s->token.val != '}') {
        if (!token_is_ident(s->token.val) && s->token.val != TOK_STRING)
            return js_parse_error(s, "identifier or string expected");
        if (next_token(s))
            return -1;
        if (s->token.val != ',' && s->token.val != '}' && !token_is_pseudo_keyword(s, JS_ATOM_as))
            return js_parse_error(s, "',' or '}' expected");
        if (s->token.val != '}' && next_token(s))
            return -1;
    }
    if (next_token(s))
        return -1;
    if (token_is_pseudo_keyword(s, JS_ATOM_from))
        return js_parse_error(s, "a program can't re-export: import the names and use them");
    return js_parse_expect_semi(s);
}

static int toolbridge_parse_export(JSParseState *s)
{
    if (next_token(s))
        return -1;
    switch (s->token.val) {
    case TOK_DEFAULT:
        return next_token(s) ? -1 : parse_export_default(s);
    case '{':
        return next_token(s) ? -1 : skip_export_list(s);
    case '*':
        return js_parse_error(s, "a program can't re-export: import the names and use them");
    default: /* export const x = …; export function f() … : a plain declaration */
        return js_parse_source_element(s);
    }
}

/* After the last statement: the default export, if any, is the program's value. */
static void toolbridge_end_program(JSFunctionDef *fd)
{
    if (default_export.program == fd)
        fd->eval_ret_idx = default_export.variable;
}

/* A program of a session may declare again what an earlier one declared. */
static void toolbridge_forget_variable(JSContext *ctx, JSAtom name)
{
    JSObject *variables = JS_VALUE_GET_OBJ(ctx->global_var_obj);
    if (find_own_property1(variables, name))
        delete_property(ctx, variables, name);
}
