/* A run: takes the run frame, executes the program, drives its promises, timers and calls until
 * nothing is left to do, and answers with the outcome frame. */

/* Runs the event loop until `promise` (consumed) is settled. Returns 0 with its value in *result, or the answer. */
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
        JS_ThrowInternalError(context, "deadlock: the program awaits a promise that nothing settles");
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

/* Drops the timers, calls and rejections that an earlier run of the session left: its promises stay pending. */
static void forget_unfinished(void)
{
    forget_pending_calls(context);
    forget_thrown(context);
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

/* Reads a field of a run frame; false unless it is present, and a string or a number. */
static bool run_field(JSValueConst frame, Field field, bool is_text, JSValue *value)
{
    return own_property(context, frame, field, value) > 0 && (is_text ? JS_IsString(*value) : JS_IsNumber(*value));
}

static bool is_our_version(JSValueConst frame)
{
    JSValue wire = JS_UNDEFINED;
    bool is_ours = run_field(frame, FIELD_WIRE, false, &wire) && JS_VALUE_GET_TAG(wire) == JS_TAG_INT &&
                   JS_VALUE_GET_INT(wire) == WIRE_VERSION;
    JS_FreeValue(context, wire);
    return is_ours;
}

/* Runs the program of a run frame, which is consumed. */
static uint64_t run_frame(JSValue frame)
{
    enum { RUN_FIELDS = 5 };
    uint64_t packed = answer(refused_frame, sizeof refused_frame - 1);
    JSValue source = JS_UNDEFINED, seed = JS_UNDEFINED, file = JS_UNDEFINED, stack = JS_UNDEFINED;
    const char *source_text = NULL, *seed_text = NULL, *file_text = NULL;
    size_t source_length, seed_length;
    uint32_t stack_bytes;

    if (JS_IsException(frame))
        return answer_exception("raised");
    if (field_count(frame) == RUN_FIELDS && is_our_version(frame) && run_field(frame, FIELD_SOURCE, true, &source) &&
        run_field(frame, FIELD_SEED, true, &seed) && run_field(frame, FIELD_FILE, true, &file) &&
        run_field(frame, FIELD_STACK, false, &stack) && !JS_ToUint32(context, &stack_bytes, stack)) {
        source_text = JS_ToCStringLen(context, &source_length, source);
        seed_text = JS_ToCStringLen(context, &seed_length, seed);
        file_text = JS_ToCString(context, file);
    }
    JS_FreeValue(context, frame);
    JS_FreeValue(context, source); /* the C strings keep what they need */
    JS_FreeValue(context, seed);
    JS_FreeValue(context, file);
    JS_FreeValue(context, stack);
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

static void begin_run(void)
{
    free(outcome);
    outcome = NULL;
    renew_reserve();
    JS_UpdateStackTop(runtime);
}

/* Fetches the run frame of that length, and runs it. */
static uint64_t run_fetched(uint32_t length)
{
    char *text = malloc((size_t)length + 1);
    if (!text)
        return 0;
    if (host_take(text, length) != (int32_t)length) {
        free(text);
        return 0;
    }
    text[length] = 0;
    JSValue frame = read_json(context, text, length);
    free(text);
    return run_frame(frame);
}

/* run(length of the run frame) → outcome frame: length << 32 | pointer; 0 if there is no memory */
EXPORT("run") uint64_t run(uint32_t length)
{
    uses_mailbox = false;
    begin_run();
    return run_fetched(length);
}

/* inbox() → where the host may put a run frame for `run_inbox`, and how long it may be: length << 32 | pointer */
EXPORT("inbox") uint64_t inbox_place(void) { return (uint64_t)(INBOX_BYTES - 1) << 32 | (uintptr_t)inbox; }

/* The same as `run`, with the frame in the inbox if it is not too long for it, asking by mailbox. */
EXPORT("run_inbox") uint64_t run_inbox(uint32_t length)
{
    uses_mailbox = true;
    begin_run();
    if (length >= INBOX_BYTES)
        return run_fetched(length);
    inbox[length] = 0;
    return run_frame(read_json(context, inbox, length));
}
