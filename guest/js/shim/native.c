/* `native`: the object through which the prelude, and only the prelude, reaches the shim.
 * It is passed to each prelude file at build time and is not reachable from guest code. */

/* native.log(stream, text) */
static JSValue native_log(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv)
{
    int32_t stream;
    size_t length;
    if (JS_ToInt32(ctx, &stream, argv[0]))
        return JS_EXCEPTION;
    const char *text = JS_ToCStringLen(ctx, &length, argv[1]);
    if (!text)
        return JS_EXCEPTION;
    host_log(stream, text, length);
    JS_FreeCString(ctx, text);
    return JS_UNDEFINED;
}

/* native.now() → milliseconds since the run began */
static JSValue native_now(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv)
{
    return JS_NewFloat64(ctx, (double)host_now(1) / 1e6);
}

/* native.randomFill(Uint8Array) */
static JSValue native_random_fill(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv)
{
    size_t length;
    uint8_t *bytes = JS_GetUint8Array(ctx, &length, argv[0]);
    if (!bytes)
        return JS_EXCEPTION;
    random_bytes(bytes, length);
    return JS_UNDEFINED;
}

/* native.utf8Bytes(well-formed text) → Uint8Array */
static JSValue native_utf8_bytes(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv)
{
    size_t length;
    const char *text = JS_ToCStringLen(ctx, &length, argv[0]);
    if (!text)
        return JS_EXCEPTION;
    JSValue bytes = JS_NewUint8ArrayCopy(ctx, (const uint8_t *)text, length);
    JS_FreeCString(ctx, text);
    return bytes;
}

/* native.utf8Text(Uint8Array, fatal) → its text, invalid bytes replaced by U+FFFD; null if there are any and `fatal` */
static JSValue native_utf8_text(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv)
{
    size_t length, units;
    const char *bytes = (const char *)JS_GetUint8Array(ctx, &length, argv[0]);
    if (!bytes)
        return JS_EXCEPTION;
    if (JS_ToBool(ctx, argv[1]) && utf8_scan(bytes, length, &units) & UTF8_HAS_ERRORS)
        return JS_NULL;
    return JS_NewStringLen(ctx, bytes, length);
}

/* native.request(frame text) → the reply's value, or throws */
static JSValue native_request(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv)
{
    size_t length;
    const char *text = JS_ToCStringLen(ctx, &length, argv[0]);
    if (!text)
        return JS_EXCEPTION;
    int32_t reply = host_call(text, length, inbox, INBOX_BYTES - 1);
    JS_FreeCString(ctx, text);
    return read_reply(ctx, reply, JS_UNDEFINED, JS_UNDEFINED);
}

/* native.timerAdded(): makes the event loop ask for timers */
static JSValue native_timer_added(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv)
{
    has_timers = true;
    return JS_UNDEFINED;
}

/* native.hostFunction(head, module, function, asynchronous) → a function that guest code may call */
static JSValue native_host_function(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv)
{
    const char *name = JS_ToCString(ctx, argv[DATA_FUNCTION]);
    if (!name)
        return JS_EXCEPTION;
    JSCFunctionData *function = JS_ToBool(ctx, argv[DATA_COUNT]) ? start_host_function : call_host_function;
    JSValue value = JS_NewCFunctionData2(ctx, function, name, 1, 0, DATA_COUNT, argv);
    JS_FreeCString(ctx, name);
    return value;
}

/* The data of a host function of either kind; NULL for anything else. */
static JSValueConst *host_function_data(JSValueConst value)
{
    JSCFunctionDataRecord *record = JS_GetOpaque(value, JS_CLASS_C_FUNCTION_DATA);
    bool is_host_function = record && (record->func == call_host_function || record->func == start_host_function);
    return is_host_function ? (JSValueConst *)record->data : NULL;
}

/* native.callFrame(function, ...arguments) → the request frame of a call, as text; undefined if it is no host function */
static JSValue native_call_frame(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv)
{
    JSValueConst *data = host_function_data(argv[0]);
    return data ? call_frame(ctx, data[DATA_HEAD], argc - 1, argv + 1) : JS_UNDEFINED;
}

/* native.start(host function, frame, resolve, reject): starts a call; one of the two is called when it is settled */
static JSValue native_start(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv)
{
    JSValueConst *data = host_function_data(argv[0]);
    if (!data)
        return JS_ThrowInternalError(ctx, "not a host function");
    return start_call(ctx, JS_DupValue(ctx, argv[1]), data, argv[2], argv[3]) ? JS_UNDEFINED : JS_EXCEPTION;
}

/* native.settleNext(): blocks until any pending call is settled */
static JSValue native_settle_next(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv)
{
    return settle_next(ctx, -1) < 0 ? JS_EXCEPTION : JS_UNDEFINED;
}

/* native.isWritingCall() → whether a call's arguments are being written */
static JSValue native_is_writing_call(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv)
{
    return JS_NewBool(ctx, is_writing_call);
}

/* native.hooks({import, toolError, placeHandles, describeError, nextTimer, runTimers, forgetTimers, awaitValue}) */
static JSValue native_hooks(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv)
{
    hooks.import = JS_GetPropertyStr(ctx, argv[0], "import");
    hooks.tool_error = JS_GetPropertyStr(ctx, argv[0], "toolError");
    hooks.place_handles = JS_GetPropertyStr(ctx, argv[0], "placeHandles");
    hooks.describe_error = JS_GetPropertyStr(ctx, argv[0], "describeError");
    hooks.next_timer = JS_GetPropertyStr(ctx, argv[0], "nextTimer");
    hooks.run_timers = JS_GetPropertyStr(ctx, argv[0], "runTimers");
    hooks.forget_timers = JS_GetPropertyStr(ctx, argv[0], "forgetTimers");
    hooks.await_value = JS_GetPropertyStr(ctx, argv[0], "awaitValue");
    return JS_UNDEFINED;
}

/* OP_import: `import(specifier)`, or one binding of a static import (name is then a string). */
static JSValue toolbridge_import(JSContext *ctx, JSValueConst specifier, JSValueConst name)
{
    JSValueConst arguments[2] = { specifier, JS_IsString(name) ? name : JS_UNDEFINED };
    return JS_Call(ctx, hooks.import, JS_UNDEFINED, 2, arguments);
}

static const JSCFunctionListEntry native_functions[] = {
    JS_CFUNC_DEF("log", 2, native_log),
    JS_CFUNC_DEF("now", 0, native_now),
    JS_CFUNC_DEF("randomFill", 1, native_random_fill),
    JS_CFUNC_DEF("utf8Bytes", 1, native_utf8_bytes),
    JS_CFUNC_DEF("utf8Text", 2, native_utf8_text),
    JS_CFUNC_DEF("request", 1, native_request),
    JS_CFUNC_DEF("timerAdded", 0, native_timer_added),
    JS_CFUNC_DEF("hostFunction", 4, native_host_function),
    JS_CFUNC_DEF("callFrame", 1, native_call_frame),
    JS_CFUNC_DEF("start", 4, native_start),
    JS_CFUNC_DEF("settleNext", 0, native_settle_next),
    JS_CFUNC_DEF("isWritingCall", 0, native_is_writing_call),
    JS_CFUNC_DEF("hooks", 1, native_hooks),
};
