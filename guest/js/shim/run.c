/* A run: takes the run frame, executes the program, drives its promises, timers and calls until
 * nothing is left to do, and answers with the outcome frame. */

enum { WIRE_VERSION = 1, MAX_UNHANDLED = 64, GARBAGE_BEFORE_COLLECTION = 1 << 20 };

static JSRuntime *runtime;
static JSContext *context;
static char *outcome; /* the outcome frame of the last run; freed by the next */

/* Rejected promises that nobody has handled yet. */
static struct {
    JSValue promise, reason;
} unhandled[MAX_UNHANDLED];
static int unhandled_count;

static void track_rejection(JSContext *ctx, JSValueConst promise, JSValueConst reason, bool is_handled, void *opaque)
{
    if (!is_handled) {
        if (unhandled_count < MAX_UNHANDLED) {
            unhandled[unhandled_count].promise = JS_DupValue(ctx, promise);
            unhandled[unhandled_count++].reason = JS_DupValue(ctx, reason);
        }
        return;
    }
    for (int i = 0; i < unhandled_count; i++) {
        if (JS_VALUE_GET_PTR(unhandled[i].promise) == JS_VALUE_GET_PTR(promise)) {
            JS_FreeValue(ctx, unhandled[i].promise);
            JS_FreeValue(ctx, unhandled[i].reason);
            unhandled[i] = unhandled[--unhandled_count];
            return;
        }
    }
}

/* ---- the outcome frame -------------------------------------------------------------- */

static const char out_of_memory_frame[] =
    "{\"wire\":1,\"failure\":{\"kind\":\"out_of_memory\",\"error\":{\"name\":\"InternalError\",\"message\":\"out of memory\",\"stack\":\"\"}}}";
static const char broken_frame[] =
    "{\"wire\":1,\"failure\":{\"kind\":\"raised\",\"error\":{\"name\":\"Error\",\"message\":\"the error could not be described\",\"stack\":\"\"}}}";

static uint64_t answer(const char *frame, size_t length)
{
    return (uint64_t)length << 32 | (uint32_t)(uintptr_t)frame;
}

static uint64_t answer_constant(void)
{
    return ran_out_of_memory ? answer(out_of_memory_frame, sizeof out_of_memory_frame - 1)
                             : answer(broken_frame, sizeof broken_frame - 1);
}

/* head + json + tail as the answer; json undefined leaves out head and json */
static uint64_t answer_frame(const char *head, JSValueConst json, const char *tail)
{
    size_t length, head_length = strlen(head), tail_length = strlen(tail);
    const char *text = JS_ToCStringLen(context, &length, json);
    if (!text)
        return answer_constant();
    outcome = malloc(head_length + length + tail_length);
    if (!outcome) {
        ran_out_of_memory = true;
        JS_FreeCString(context, text);
        return answer_constant();
    }
    memcpy(outcome, head, head_length);
    memcpy(outcome + head_length, text, length);
    memcpy(outcome + head_length + length, tail, tail_length);
    JS_FreeCString(context, text);
    return answer(outcome, head_length + length + tail_length);
}

static void clear_exception(void) { JS_FreeValue(context, JS_GetException(context)); }

/* The failure frame for a thrown value. `thrown` is consumed. */
static uint64_t answer_failure(const char *kind, JSValue thrown)
{
    char head[64];
    JSValue json = JS_UNDEFINED;
    JSValue description = JS_Call(context, hooks.describe_error, JS_UNDEFINED, 1, (JSValueConst *)&thrown);
    JS_FreeValue(context, thrown);
    if (!JS_IsException(description))
        json = JS_JSONStringify(context, description, JS_UNDEFINED, JS_UNDEFINED);
    JS_FreeValue(context, description);
    if (!JS_IsString(json)) {
        JS_FreeValue(context, json);
        clear_exception();
        return answer_constant();
    }
    snprintf(head, sizeof head, "{\"wire\":%d,\"failure\":{\"kind\":\"%s\",\"error\":", WIRE_VERSION, kind);
    uint64_t packed = answer_frame(head, json, "}}");
    JS_FreeValue(context, json);
    return packed;
}

static bool is_out_of_memory_error(JSValueConst thrown)
{
    JSValue message = JS_UNDEFINED;
    bool matches = false;
    if (!ran_out_of_memory)
        return false;
    if (JS_IsNull(thrown)) /* the engine could not even make the error object */
        return true;
    if (JS_IsError(thrown) && own_property(context, thrown, FIELD_MESSAGE, &message) > 0) {
        const char *text = JS_ToCString(context, message);
        matches = text && !strcmp(text, "out of memory");
        JS_FreeCString(context, text);
    }
    JS_FreeValue(context, message);
    return matches;
}

static uint64_t answer_exception(const char *kind)
{
    JSValue thrown = JS_GetException(context);
    return answer_failure(is_out_of_memory_error(thrown) ? "out_of_memory" : kind, thrown);
}

static uint64_t answer_value(JSValueConst value)
{
    static const char nothing[] = "{\"wire\":1}";
    if (JS_IsFunction(context, value)) {
        JS_ThrowTypeError(context, "the run's value is a function, which can't be returned: call it");
        return answer_exception("raised");
    }
    JSValue json = JS_JSONStringify(context, value, JS_UNDEFINED, JS_UNDEFINED);
    if (JS_IsException(json))
        return answer_exception("raised");
    uint64_t packed = JS_IsUndefined(json) ? answer(nothing, sizeof nothing - 1)
                                           : answer_frame("{\"wire\":1,\"value\":", json, "}");
    JS_FreeValue(context, json);
    return packed;
}

/* ---- the event loop ----------------------------------------------------------------- */

typedef enum { IDLE, FAILED, REJECTED } LoopEnd;

/* Runs jobs, timers and settled calls until nothing is left. FAILED: an exception is pending;
 * REJECTED: a promise other than `main_promise` was rejected and nobody handled it. */
static LoopEnd run_event_loop(JSValueConst main_promise)
{
    for (;;) {
        JSContext *job_context;
        int ran;
        while ((ran = JS_ExecutePendingJob(runtime, &job_context)) > 0) {
        }
        if (ran < 0)
            return FAILED;
        for (int i = 0; i < unhandled_count; i++)
            if (JS_VALUE_GET_PTR(unhandled[i].promise) != JS_VALUE_GET_PTR(main_promise))
                return REJECTED;
        if (JS_PromiseState(context, main_promise) == JS_PROMISE_REJECTED)
            return IDLE;

        double milliseconds = -1;
        if (has_timers) {
            JSValue next = JS_Call(context, hooks.next_timer, JS_UNDEFINED, 0, NULL);
            if (JS_IsException(next) || JS_ToFloat64(context, &milliseconds, next))
                return FAILED;
        }
        if (milliseconds < 0 && !pending_count)
            return IDLE;
        if (milliseconds != 0) {
            int64_t microseconds = milliseconds < 0 ? -1 : (int64_t)(milliseconds * 1000);
            int32_t length = host_wait(microseconds, reply_buffer, REPLY_BYTES - 1);
            if (length < 0) {
                JS_ThrowInternalError(context, "the host has no answer to wait for");
                return FAILED;
            }
            if (length > 0) {
                if (settle(context, read_frame(context, length)))
                    return FAILED;
                continue;
            }
        }
        JSValue done = JS_Call(context, hooks.run_timers, JS_UNDEFINED, 0, NULL);
        if (JS_IsException(done))
            return FAILED;
        JS_FreeValue(context, done);
    }
}

/* Runs until `promise` (consumed) is settled. 0: *result is its value; otherwise the answer. */
static uint64_t finish(JSValue promise, JSValue *result)
{
    uint64_t packed = 0;
    LoopEnd end = run_event_loop(promise);
    if (end == FAILED) {
        packed = answer_exception("raised");
    } else if (end == REJECTED) {
        int i = 0;
        while (JS_VALUE_GET_PTR(unhandled[i].promise) == JS_VALUE_GET_PTR(promise))
            i++;
        JS_Throw(context, JS_DupValue(context, unhandled[i].reason));
        packed = answer_exception("raised");
    } else if (JS_PromiseState(context, promise) == JS_PROMISE_FULFILLED) {
        *result = JS_PromiseResult(context, promise);
    } else if (JS_PromiseState(context, promise) == JS_PROMISE_REJECTED) {
        JS_Throw(context, JS_PromiseResult(context, promise));
        packed = answer_exception("raised");
    } else {
        JS_ThrowInternalError(context, "the program awaits a promise that nothing will ever settle");
        packed = answer_exception("raised");
    }
    JS_FreeValue(context, promise);
    return packed;
}

/* { value } → value; `wrapped` is consumed. False, with an exception, for something else. */
static bool unwrap_value(JSValue wrapped, JSValue *value)
{
    *value = JS_UNDEFINED;
    int found = JS_IsObject(wrapped) ? own_property(context, wrapped, FIELD_VALUE, value) : 0;
    JS_FreeValue(context, wrapped);
    if (!found) /* a `then` on Object.prototype makes a promise of every object */
        JS_ThrowTypeError(context, "the program's value was lost: Object.prototype has been changed");
    return found > 0;
}

static uint64_t run_program(const char *source, size_t length, const char *file)
{
    JSValue wrapped = JS_UNDEFINED, value;
    bool has_default;
    JSValue code = compile_program(context, source, length, file, &has_default);
    if (JS_IsException(code))
        return answer_exception("syntax");
    JSValue promise = JS_EvalFunction(context, code);
    if (JS_IsException(promise))
        return answer_exception("raised");
    uint64_t packed = finish(promise, &wrapped);
    if (packed)
        return packed;
    if (!unwrap_value(wrapped, &value))
        return answer_exception("raised");
    if (JS_IsObject(value)) { /* a promise is awaited, a default-exported function called */
        JSValueConst arguments[2] = { value, JS_NewBool(context, has_default) };
        promise = JS_Call(context, hooks.await_value, JS_UNDEFINED, 2, arguments);
        JS_FreeValue(context, value);
        if (JS_IsException(promise))
            return answer_exception("raised");
        wrapped = JS_UNDEFINED;
        packed = finish(promise, &wrapped);
        if (packed)
            return packed;
        if (!unwrap_value(wrapped, &value))
            return answer_exception("raised");
    }
    packed = answer_value(value);
    JS_FreeValue(context, value);
    return packed;
}

/* What an earlier run of the session left unfinished is dropped: its promises stay pending. */
static void forget_unfinished(void)
{
    for (uint32_t i = 0; i < pending_count; i++) {
        JS_FreeValue(context, pending[i].resolve);
        JS_FreeValue(context, pending[i].reject);
        JS_FreeValue(context, pending[i].module);
        JS_FreeValue(context, pending[i].function);
    }
    pending_count = 0;
    for (int i = 0; i < unhandled_count; i++) {
        JS_FreeValue(context, unhandled[i].promise);
        JS_FreeValue(context, unhandled[i].reason);
    }
    unhandled_count = 0;
    if (has_timers) {
        has_timers = false;
        JSValue done = JS_Call(context, hooks.forget_timers, JS_UNDEFINED, 0, NULL);
        if (JS_IsException(done))
            clear_exception();
        JS_FreeValue(context, done);
    }
}

/* run(length of the run frame) → outcome frame: length << 32 | pointer; 0 if there is no memory */
EXPORT("run") uint64_t run(uint32_t length)
{
    uint64_t packed = 0;
    JSValue source = JS_UNDEFINED, seed = JS_UNDEFINED, file = JS_UNDEFINED, stack = JS_UNDEFINED;
    const char *source_text = NULL, *seed_text = NULL, *file_text = NULL;
    size_t source_length, seed_length;
    uint32_t stack_bytes;

    free(outcome);
    outcome = NULL;
    renew_reserve();
    JS_UpdateStackTop(runtime);
    char *text = malloc((size_t)length + 1);
    if (!text)
        return 0;
    if (host_take(text, length) != (int32_t)length) {
        free(text);
        return 0;
    }
    text[length] = 0;
    JSValue frame = JS_ParseJSON(context, text, length, "<run>");
    free(text);
    if (JS_IsException(frame))
        return answer_exception("raised");
    if (own_property(context, frame, FIELD_SOURCE, &source) > 0 && own_property(context, frame, FIELD_SEED, &seed) > 0 &&
        own_property(context, frame, FIELD_FILE, &file) > 0 && own_property(context, frame, FIELD_STACK, &stack) > 0 &&
        !JS_ToUint32(context, &stack_bytes, stack)) {
        source_text = JS_ToCStringLen(context, &source_length, source);
        seed_text = JS_ToCStringLen(context, &seed_length, seed);
        file_text = JS_ToCString(context, file);
    }
    JS_FreeValue(context, frame);
    JS_FreeValue(context, source); /* the C strings keep what they need */
    JS_FreeValue(context, seed);
    JS_FreeValue(context, file);
    if (source_text && seed_text && file_text && seed_random(context, seed_text, seed_length)) {
        JS_SetMaxStackSize(runtime, stack_bytes);
        forget_unfinished();
        packed = run_program(source_text, source_length, file_text);
        forget_unfinished();
    } else if (ran_out_of_memory) {
        clear_exception();
        packed = answer_constant();
    }
    JS_FreeCString(context, source_text);
    JS_FreeCString(context, seed_text);
    JS_FreeCString(context, file_text);
    return packed;
}

/* ---- build time ---------------------------------------------------------------------- */

/* The prelude's files, generated by the build: name and text in evaluation order. */
typedef struct {
    const char *name, *text;
} PreludeFile;
extern const PreludeFile prelude_files[];
extern const uint32_t prelude_count;

/* prepare() → 0; makes the engine and evaluates the prelude. The build calls it once and bakes
 * the memory it leaves into the image; the image doesn't export it. */
EXPORT("prepare") int32_t prepare(void)
{
    strip_sources = true;
    runtime = JS_NewRuntime2(&engine_allocator, NULL);
    if (!runtime)
        return -1;
    reply_buffer = malloc(REPLY_BYTES);
    if (!reply_buffer)
        return -1;
    JS_UpdateStackTop(runtime);
    JS_SetMaxStackSize(runtime, 512 << 10);
    JS_SetHostPromiseRejectionTracker(runtime, track_rejection, NULL);
    context = JS_NewContext(runtime);
    if (!context)
        return -2;
    if (!make_fields(context))
        return -2;
    JSValue native = JS_NewObject(context), shared = JS_NewObjectProto(context, JS_NULL);
    JS_SetPropertyFunctionList(context, native, native_functions, countof(native_functions));
    for (uint32_t i = 0; i < prelude_count; i++) {
        JSValueConst arguments[2] = { native, shared };
        JSValue function = JS_Eval(context, prelude_files[i].text, strlen(prelude_files[i].text),
                                   prelude_files[i].name, JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_STRICT);
        JSValue done = JS_IsException(function) ? function : JS_Call(context, function, JS_UNDEFINED, 2, arguments);
        if (JS_IsException(done)) {
            JSValue error = JS_GetException(context), stack = JS_GetPropertyStr(context, error, "stack");
            const char *message = JS_ToCString(context, error), *trace = JS_ToCString(context, stack);
            if (message)
                host_log(2, message, strlen(message));
            if (trace)
                host_log(2, trace, strlen(trace));
            return -3 - (int32_t)i;
        }
        JS_FreeValue(context, done);
        JS_FreeValue(context, function);
    }
    JS_FreeValue(context, native);
    JS_FreeValue(context, shared);
    strip_sources = false;
    JS_RunGC(runtime);
    /* A collection writes to every object, and so copies every page that a run shares with all others:
     * small runs should end before their first one. */
    JS_SetGCThreshold(runtime, runtime->malloc_state.malloc_size + GARBAGE_BEFORE_COLLECTION);
    plug_heap_holes(runtime);
    renew_reserve();
    return 0;
}
