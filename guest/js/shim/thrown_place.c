/* Where a value that is no Error was thrown: it has no stack to tell it by. */
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

/* Called by the interpreter for each `throw` (guest/js/patches.py). */
static void toolbridge_note_throw(JSContext *ctx, JSValueConst value)
{
    if (JS_IsError(value))
        return;
    /* Thrown again, by a catch or at the end of a finally: what matters is where it came from. */
    if (last_thrown.line && JS_IsObject(value) && js_same_value(ctx, last_thrown.value, value))
        return;
    JS_FreeValue(ctx, last_thrown.value);
    last_thrown.value = JS_DupValue(ctx, value);
    guest_location(ctx, &last_thrown.line, &last_thrown.column);
}

/* The stack of a value that nothing caught, as an Error would have it; undefined if it is not known. */
static JSValue stack_of_thrown(JSContext *ctx, JSValueConst value)
{
    char text[64];
    if (!last_thrown.line || JS_IsError(value) || !js_same_value(ctx, last_thrown.value, value))
        return JS_UNDEFINED;
    snprintf(text, sizeof text, "    at <anonymous> (main.js:%d:%d)\n", (int)last_thrown.line, (int)last_thrown.column);
    return JS_NewString(ctx, text);
}
