/* The outcome frame: a run's value, or its failure. */

enum { WIRE_VERSION = 1 };

static JSRuntime *runtime;
static JSContext *context;
static char *outcome; /* the outcome frame of the last run; freed by the next */

static const char out_of_memory_frame[] =
    "{\"wire\":1,\"failure\":{\"kind\":\"out_of_memory\",\"error\":{\"name\":\"InternalError\",\"message\":\"out of memory\",\"stack\":\"\"}}}";
static const char broken_frame[] =
    "{\"wire\":1,\"failure\":{\"kind\":\"raised\",\"error\":{\"name\":\"Error\",\"message\":\"the error could not be described\",\"stack\":\"\"}}}";

/* The answer to a malformed run frame: a version that no host accepts. */
static const char refused_frame[] = "{\"wire\":0}";

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
    JSValue stack = stack_of_thrown(context, thrown);
    if (JS_IsException(stack)) {
        clear_exception();
        stack = JS_UNDEFINED;
    }
    JSValueConst arguments[2] = { thrown, stack };
    JSValue description = JS_Call(context, hooks.describe_error, JS_UNDEFINED, 2, arguments);
    JS_FreeValue(context, stack);
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
