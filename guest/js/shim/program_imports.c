/* The `import` declarations of a program.
 *
 * Imports are done first, wherever they stand: a module that is missing is found before anything
 * has taken effect. A program that may have some is therefore compiled twice: the first time its
 * imports are collected, the second time they are all emitted at its beginning. */

typedef struct {
    JSAtom specifier, imported, local; /* local: JS_ATOM_NULL when nothing is bound */
    int line, column;
} ImportBinding;

static struct {
    bool is_collecting;
    ImportBinding *bindings;
    int count, capacity;
} imports;

static void forget_imports(JSContext *ctx)
{
    for (int i = 0; i < imports.count; i++) {
        JS_FreeAtom(ctx, imports.bindings[i].specifier);
        JS_FreeAtom(ctx, imports.bindings[i].imported);
        JS_FreeAtom(ctx, imports.bindings[i].local);
    }
    js_free(ctx, imports.bindings);
    memset(&imports, 0, sizeof imports);
}

/* Declares the local name, so that a clash is found where it stands, and remembers the import. */
static int add_binding(JSParseState *s, JSAtom local, JSAtom imported)
{
    if (!imports.is_collecting)
        return 0;
    if (local == JS_ATOM_arguments || local == JS_ATOM_eval)
        return js_parse_error(s, "invalid import binding");
    if (local != JS_ATOM_NULL && define_var(s, s->cur_func, local, JS_VAR_DEF_CONST) < 0)
        return -1;
    if (imports.count == imports.capacity) {
        int capacity = imports.capacity ? 2 * imports.capacity : 16;
        ImportBinding *larger = js_realloc(s->ctx, imports.bindings, capacity * sizeof *larger);
        if (!larger)
            return -1;
        imports.bindings = larger;
        imports.capacity = capacity;
    }
    imports.bindings[imports.count++] = (ImportBinding){
        .local = JS_DupAtom(s->ctx, local),
        .imported = JS_DupAtom(s->ctx, imported),
    };
    return 0;
}

static int parse_binding_name(JSParseState *s, JSAtom *name)
{
    if (s->token.val != TOK_IDENT || s->token.u.ident.is_reserved)
        return js_parse_error(s, "identifier expected");
    *name = JS_DupAtom(s->ctx, s->token.u.ident.atom);
    return next_token(s);
}

/* { a, b as c, "d-e" as f } */
static int parse_named_imports(JSParseState *s)
{
    JSContext *ctx = s->ctx;
    if (next_token(s))
        return -1;
    while (s->token.val != '}') {
        JSAtom imported, local = JS_ATOM_NULL;
        bool needs_name = true;
        int failed;
        if (token_is_ident(s->token.val)) {
            needs_name = s->token.val != TOK_IDENT || s->token.u.ident.is_reserved;
            imported = JS_DupAtom(ctx, s->token.u.ident.atom);
        } else if (s->token.val == TOK_STRING) {
            imported = JS_ValueToAtom(ctx, s->token.u.str.str);
            if (imported == JS_ATOM_NULL)
                return -1;
        } else {
            return js_parse_error(s, "identifier or string expected");
        }
        failed = next_token(s);
        if (!failed && token_is_pseudo_keyword(s, JS_ATOM_as))
            failed = next_token(s) || parse_binding_name(s, &local);
        else if (!failed && needs_name)
            failed = js_parse_error(s, "'as' and a name expected");
        else if (!failed)
            local = JS_DupAtom(ctx, imported);
        if (!failed)
            failed = add_binding(s, local, imported);
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

static int parse_import_clause(JSParseState *s)
{
    JSAtom local = JS_ATOM_NULL;
    int failed;
    if (s->token.val == TOK_IDENT) {
        failed = parse_binding_name(s, &local) || add_binding(s, local, JS_ATOM_default);
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
        failed = next_token(s) || parse_binding_name(s, &local) || add_binding(s, local, JS_ATOM__star_);
        JS_FreeAtom(s->ctx, local);
        return failed ? -1 : 0;
    }
    if (s->token.val == '{')
        return parse_named_imports(s);
    return js_parse_error(s, "import clause expected");
}

/* The specifier, which all bindings of the statement since `first` share. */
static int parse_specifier(JSParseState *s, int first)
{
    JSValue attributes;
    int failed, line = s->token.line_num, column = s->token.col_num;
    if (s->token.val != TOK_STRING)
        return js_parse_error(s, "module specifier expected: a string such as \"host:mcp-weather\"");
    JSAtom specifier = JS_ValueToAtom(s->ctx, s->token.u.str.str);
    if (specifier == JS_ATOM_NULL)
        return -1;
    /* import "…" and import {} from "…" bind nothing, but the module must be there */
    failed = first == imports.count ? add_binding(s, JS_ATOM_NULL, JS_ATOM__star_) : 0;
    for (int i = first; i < imports.count; i++) {
        imports.bindings[i].specifier = JS_DupAtom(s->ctx, specifier);
        imports.bindings[i].line = line;
        imports.bindings[i].column = column;
    }
    JS_FreeAtom(s->ctx, specifier);
    if (failed || next_token(s))
        return -1;
    failed = js_parse_with_clause(s, &attributes);
    JS_FreeValue(s->ctx, attributes);
    return failed;
}

static int toolbridge_parse_import(JSParseState *s)
{
    int first = imports.count;
    if (next_token(s))
        return -1;
    if (s->token.val != TOK_STRING) {
        if (parse_import_clause(s))
            return -1;
        if (!token_is_pseudo_keyword(s, JS_ATOM_from))
            return js_parse_error(s, "from clause expected");
        if (next_token(s))
            return -1;
    }
    return parse_specifier(s, first) ? -1 : js_parse_expect_semi(s);
}

/* Before the first statement: the imports that were collected. OP_import with a string in place of
 * the options object answers at once with that export; "*" is the module itself. */
static int toolbridge_begin_program(JSParseState *s)
{
    if (!toolbridge_is_program(s->cur_func) || imports.is_collecting)
        return 0;
    for (int i = 0; i < imports.count; i++) {
        ImportBinding *binding = &imports.bindings[i];
        emit_op(s, OP_push_atom_value);
        emit_atom(s, binding->specifier);
        emit_op(s, OP_push_atom_value);
        emit_atom(s, binding->imported);
        emit_source_loc_at(s, binding->line, binding->column);
        emit_op(s, OP_import);
        if (binding->local == JS_ATOM_NULL) {
            emit_op(s, OP_drop);
            continue;
        }
        if (define_var(s, s->cur_func, binding->local, JS_VAR_DEF_CONST) < 0)
            return -1;
        emit_op(s, OP_scope_put_var_init);
        emit_atom(s, binding->local);
        emit_u16(s, s->cur_func->scope_level);
    }
    return 0;
}
