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

/* A regular expression literal that doesn't compile: the pending exception, thrown with its place. */
static int toolbridge_regexp_error(JSParseState *s)
{
    JSValue error = JS_GetException(s->ctx), message = JS_GetPropertyStr(s->ctx, error, "message");
    const char *text = JS_ToCString(s->ctx, message);
    js_parse_error(s, "%s", text ? text : "invalid regular expression");
    JS_FreeCString(s->ctx, text);
    JS_FreeValue(s->ctx, message);
    JS_FreeValue(s->ctx, error);
    return -1;
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

/* `class Name`: the name, or JS_ATOM_NULL for an anonymous one (`class {`, `class extends …`) */
static int peek_class_name(JSParseState *s, JSAtom *name)
{
    JSParsePos start;
    *name = JS_ATOM_NULL;
    js_parse_get_pos(s, &start);
    if (next_token(s))
        return -1;
    if (s->token.val == TOK_IDENT)
        *name = JS_DupAtom(s->ctx, s->token.u.ident.atom);
    return js_parse_seek_token(s, &start);
}

/* Makes the variable just declared by this name the default export. */
static int export_variable(JSParseState *s, JSAtom name)
{
    emit_op(s, OP_scope_get_var);
    emit_atom(s, name);
    emit_u16(s, s->cur_func->scope_level);
    return emit_default_export(s);
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
                                            s->token.ptr, s->token.line_num, s->token.col_num) ||
                     export_variable(s, name);
            JS_FreeAtom(s->ctx, name);
            return failed ? -1 : 0;
        }
        return js_parse_assign_expr(s) || emit_default_export(s) ? -1 : 0;
    }
    if (s->token.val == TOK_CLASS) {
        if (peek_class_name(s, &name))
            return -1;
        if (name == JS_ATOM_NULL)
            return js_parse_assign_expr(s) || emit_default_export(s) ? -1 : 0;
        failed = js_parse_class(s, false, JS_PARSE_EXPORT_NONE) || export_variable(s, name);
        JS_FreeAtom(s->ctx, name);
        return failed ? -1 : 0;
    }
    if (js_parse_assign_expr(s) || emit_default_export(s))
        return -1;
    return js_parse_expect_semi(s);
}

/* export { a, b as c };  names are not exported to anywhere, except as the default */
static int parse_export_list(JSParseState *s)
{
    while (s->token.val != '}') {
        if (!token_is_ident(s->token.val) && s->token.val != TOK_STRING)
            return js_parse_error(s, "identifier or string expected");
        JSAtom local = token_is_ident(s->token.val) ? JS_DupAtom(s->ctx, s->token.u.ident.atom) : JS_ATOM_NULL;
        int failed = next_token(s);
        if (!failed && token_is_pseudo_keyword(s, JS_ATOM_as)) {
            failed = next_token(s);
            if (!failed && s->token.val == TOK_DEFAULT && local != JS_ATOM_NULL)
                failed = export_variable(s, local);
            else if (!failed && !token_is_ident(s->token.val) && s->token.val != TOK_STRING)
                failed = js_parse_error(s, "identifier or string expected");
            failed = failed || next_token(s);
        }
        JS_FreeAtom(s->ctx, local);
        if (failed)
            return -1;
        if (s->token.val != ',' && s->token.val != '}')
            return js_parse_error(s, "',' or '}' expected");
        if (s->token.val == ',' && next_token(s))
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
        return next_token(s) ? -1 : parse_export_list(s);
    case '*':
        return js_parse_error(s, "a program can't re-export: import the names and use them");
    case TOK_CONST:
    case TOK_LET:
    case TOK_VAR:
    case TOK_CLASS:
    case TOK_FUNCTION: /* a plain declaration */
        return js_parse_source_element(s);
    default:
        if (token_is_pseudo_keyword(s, JS_ATOM_let) ||
            (token_is_pseudo_keyword(s, JS_ATOM_async) && peek_token(s, true) == TOK_FUNCTION))
            return js_parse_source_element(s);
        return js_parse_error(s, "a declaration, 'default' or '{' expected after 'export'");
    }
}

/* After the last statement: the default export, if any, is the program's value. */
static void toolbridge_end_program(JSFunctionDef *fd)
{
    if (default_export.program == fd)
        fd->eval_ret_idx = default_export.variable;
}

/* Deletes a variable, so that a program of a session may redeclare a name of an earlier one. */
static void toolbridge_forget_variable(JSContext *ctx, JSAtom name)
{
    JSObject *variables = JS_VALUE_GET_OBJ(ctx->global_var_obj);
    if (find_own_property1(variables, name))
        delete_property(ctx, variables, name);
}

/* ---- compiling ---------------------------------------------------------------------- */

/* Compiles a program, and says whether it has a default export. An exception is a syntax error. */
static JSValue compile_program(JSContext *ctx, const char *source, size_t length, const char *file, bool *has_default)
{
    const int flags = JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_ASYNC | JS_EVAL_FLAG_STRICT | JS_EVAL_FLAG_COMPILE_ONLY;
    default_export.program = NULL;
    forget_imports(ctx);
    if (memmem(source, length, "import", 6)) {
        imports.is_collecting = true;
        JSValue code = JS_Eval(ctx, source, length, file, flags);
        imports.is_collecting = false;
        if (JS_IsException(code)) {
            forget_imports(ctx);
            return code;
        }
        JS_FreeValue(ctx, code);
        default_export.program = NULL;
    }
    JSValue code = JS_Eval(ctx, source, length, file, flags);
    forget_imports(ctx);
    *has_default = default_export.program != NULL;
    default_export.program = NULL; /* dangling: the parser has freed the function */
    return code;
}
