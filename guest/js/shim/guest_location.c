/* Places in guest code: of a call under way, and of the last `throw` of a value that is no Error and so has no stack. */

/* The current line and column of guest code: the innermost frame of the program's own text; line 0 if there is none. */
static void guest_location(JSContext *ctx, int32_t *line, int32_t *column)
{
    *line = *column = 0;
    for (JSStackFrame *frame = ctx->rt->current_stack_frame; frame; frame = frame->prev_frame) {
        JSObject *function = JS_VALUE_GET_OBJ(frame->cur_func);
        if (!js_class_has_bytecode(function->class_id) || !frame->cur_pc)
            continue;
        JSFunctionBytecode *code = function->u.func.function_bytecode;
        const char *file = code->filename ? JS_AtomToCString(ctx, code->filename) : NULL;
        bool is_program = file && !strcmp(file, "main.js");
        JS_FreeCString(ctx, file);
        if (is_program) {
            *line = find_line_num(ctx, code, frame->cur_pc - code->byte_code_buf - 1, column);
            return;
        }
    }
}

static struct {
    JSValue value;
    int32_t line, column; /* line 0: nothing was thrown */
} last_thrown;

static void forget_thrown(JSContext *ctx)
{
    JS_FreeValue(ctx, last_thrown.value);
    last_thrown.value = JS_UNDEFINED;
    last_thrown.line = 0;
}

/* Records the place of a thrown value; called by the interpreter for each `throw` (guest/js/patches.py). */
static void toolbridge_note_throw(JSContext *ctx, JSValueConst value)
{
    if (JS_IsError(value))
        return;
    /* Rethrown by a catch or at the end of a finally: the first place stays. */
    if (last_thrown.line && JS_IsObject(value) && js_same_value(ctx, last_thrown.value, value))
        return;
    JS_FreeValue(ctx, last_thrown.value);
    last_thrown.value = JS_DupValue(ctx, value);
    guest_location(ctx, &last_thrown.line, &last_thrown.column);
}

/* A stack for an uncaught value, in the form of Error.stack; undefined if its place is unknown. */
static JSValue stack_of_thrown(JSContext *ctx, JSValueConst value)
{
    char text[64];
    if (!last_thrown.line || JS_IsError(value) || !js_same_value(ctx, last_thrown.value, value))
        return JS_UNDEFINED;
    snprintf(text, sizeof text, "    at <anonymous> (main.js:%d:%d)\n", (int)last_thrown.line, (int)last_thrown.column);
    return JS_NewString(ctx, text);
}
