/* Pending calls: started without waiting, by functions of /async modules (which settle promises) and by parallel(). */

/* A call in flight: its number, its two callbacks, and its place in guest code for the stack of an error. */
typedef struct {
    int32_t id;
    int32_t line, column; /* of the call in guest code; line 0: unknown */
    JSValue resolve, reject, module, function;
} PendingCall;
static PendingCall *pending;
static uint32_t pending_count, pending_capacity;
static bool has_lost_answer; /* there was no memory to fetch a settled frame, so its call is unknown */

static void free_call(JSContext *ctx, PendingCall *call)
{
    JS_FreeValue(ctx, call->resolve);
    JS_FreeValue(ctx, call->reject);
    JS_FreeValue(ctx, call->module);
    JS_FreeValue(ctx, call->function);
}

static void forget_pending_calls(JSContext *ctx)
{
    for (uint32_t i = 0; i < pending_count; i++)
        free_call(ctx, &pending[i]);
    pending_count = 0;
    has_lost_answer = false;
}

/* Reserves room for one more pending call before it starts: nothing may fail afterwards. */
static bool reserve_pending(JSContext *ctx)
{
    if (pending_count < pending_capacity)
        return true;
    uint32_t capacity = pending_capacity ? 2 * pending_capacity : 16;
    PendingCall *larger = js_realloc(ctx, pending, capacity * sizeof *pending);
    if (!larger)
        return false;
    pending = larger;
    pending_capacity = capacity;
    return true;
}

/* Starts the call of a request frame (consumed) without blocking; `data` is the host function's. Its value goes to
 * `resolve`, its error to `reject`. Returns false, with an exception, if the call couldn't start. */
static bool start_call(JSContext *ctx, JSValue frame, JSValueConst *data, JSValueConst resolve, JSValueConst reject)
{
    size_t length;
    if (JS_IsException(frame))
        return false;
    const char *text = JS_ToCStringLen(ctx, &length, frame);
    JS_FreeValue(ctx, frame);
    if (!text)
        return false;
    /* Only now: writing the frame may have started calls of its own. */
    int32_t id = reserve_pending(ctx) ? host_start(text, length) : 0;
    JS_FreeCString(ctx, text);
    if (id <= 0) {
        if (id < 0)
            JS_ThrowInternalError(ctx, "the host refused the call");
        return false;
    }
    PendingCall *call = &pending[pending_count++];
    *call = (PendingCall){
        .id = id,
        .resolve = JS_DupValue(ctx, resolve),
        .reject = JS_DupValue(ctx, reject),
        .module = JS_DupValue(ctx, data[DATA_MODULE]),
        .function = JS_DupValue(ctx, data[DATA_FUNCTION]),
    };
    guest_location(ctx, &call->line, &call->column);
    return true;
}

/* A host function in the module's /async twin: answers with a promise. */
static JSValue start_host_function(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv,
                                   int magic, JSValueConst *data)
{
    JSValue functions[2], promise = JS_NewPromiseCapability(ctx, functions);
    if (JS_IsException(promise))
        return promise;
    if (!start_call(ctx, call_frame(ctx, data[DATA_HEAD], argc, argv), data, functions[0], functions[1])) {
        JSValue error = JS_GetException(ctx);
        JS_FreeValue(ctx, JS_Call(ctx, functions[1], JS_UNDEFINED, 1, (JSValueConst *)&error));
        JS_FreeValue(ctx, error);
    }
    JS_FreeValue(ctx, functions[0]);
    JS_FreeValue(ctx, functions[1]);
    return promise;
}

/* Settles a call: runs its resolve or reject callback. `result` is consumed; JS_EXCEPTION stands for the pending one. */
static void end_call(JSContext *ctx, PendingCall *call, JSValue result)
{
    bool failed = JS_IsException(result);
    if (failed)
        result = JS_GetException(ctx);
    if (failed && JS_IsNull(result)) { /* no memory even for the error; by now what was half read is free again */
        refill_reserve();
        JS_ThrowOutOfMemory(ctx);
        result = JS_GetException(ctx);
    }
    JS_FreeValue(ctx, JS_Call(ctx, failed ? call->reject : call->resolve, JS_UNDEFINED, 1, (JSValueConst *)&result));
    JS_FreeValue(ctx, result);
    free_call(ctx, call);
}

/* Settles the call that a settled frame names. Returns -1 with an exception on a bad frame. */
static int settle(JSContext *ctx, const char *text, int32_t length)
{
    static const char head[] = "{\"id\":";
    int32_t id = memcmp(text, head, sizeof head - 1) ? -1 : (int32_t)strtol(text + sizeof head - 1, NULL, 10);
    for (uint32_t i = 0; i < pending_count; i++) {
        if (pending[i].id != id)
            continue;
        /* Taken out first: what follows may run guest code, which may start and settle calls. */
        PendingCall call = pending[i];
        pending[i] = pending[--pending_count];
        char location[64] = "";
        if (call.line > 0)
            snprintf(location, sizeof location, "    at <anonymous> (main.js:%d:%d)\n", (int)call.line, (int)call.column);
        JSValue stack = JS_NewString(ctx, location);
        if (JS_IsException(stack)) { /* no memory: an error then goes without */
            JS_FreeValue(ctx, JS_GetException(ctx));
            stack = JS_UNDEFINED;
        }
        JSValue frame = read_json(ctx, text, length); /* a value too large for the memory left fails its call */
        end_call(ctx, &call, unwrap_reply(ctx, frame, call.module, call.function, stack));
        JS_FreeValue(ctx, stack);
        return 0;
    }
    JS_ThrowInternalError(ctx, "the host settled an unknown call");
    return -1;
}

/* Rejects the calls still pending once no more answers can come and one of theirs was lost. */
static void fail_lost_calls(JSContext *ctx)
{
    has_lost_answer = false;
    while (pending_count) {
        PendingCall call = pending[--pending_count];
        end_call(ctx, &call, JS_ThrowOutOfMemory(ctx));
    }
}

/* Blocks until the next call settles; microseconds < 0: without a timeout.
 * Returns 1 after a settled call, 0 on timeout, -1 with an exception. */
static int settle_next(JSContext *ctx, int64_t microseconds)
{
    int32_t length = host_wait(microseconds, inbox, INBOX_BYTES - 1);
    if (length == 0)
        return 0;
    if (length < 0 && has_lost_answer) {
        fail_lost_calls(ctx);
        return 1;
    }
    if (length < 0) {
        JS_ThrowInternalError(ctx, "no call is pending");
        return -1;
    }
    char *text = frame_text(ctx, length);
    if (!text) {
        JS_FreeValue(ctx, JS_GetException(ctx));
        has_lost_answer = true;
        return 1;
    }
    /* A frame in the inbox is parsed before anything else can be written there. */
    int status = settle(ctx, text, length);
    free_frame_text(ctx, text);
    return status ? -1 : 1;
}
