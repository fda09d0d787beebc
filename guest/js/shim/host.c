/* The imports: everything that the guest can reach. guest/WIRE.md is their specification. */
#define EXPORT(name) __attribute__((export_name(name)))
#define IMPORT(name) __attribute__((import_module("toolbridge"), import_name(name)))

IMPORT("call") int32_t host_call(const char *request, uint32_t length, char *reply, uint32_t capacity);
IMPORT("start") int32_t host_start(const char *request, uint32_t length);
IMPORT("wait") int32_t host_wait(int64_t microseconds, char *reply, uint32_t capacity);
IMPORT("take") int32_t host_take(char *buffer, uint32_t length);
IMPORT("log") void host_log(int32_t stream, const char *text, uint32_t length);
IMPORT("now") int64_t host_now(int32_t clock);

/* Replies up to this size come without a second crossing. In the heap, so that what every run writes
 * to, the variables of this unit, lies close together. */
enum { REPLY_BYTES = 16384 };
static char *reply_buffer;

/* What the prelude gives us at build time (native.hooks). */
static struct {
    JSValue import;         /* (specifier, name | undefined) → module, export or promise */
    JSValue tool_error;     /* (error frame, module, function, stack | undefined) → ToolError */
    JSValue describe_error; /* (thrown value) → {name, message, stack} */
    JSValue next_timer;     /* () → milliseconds until the next timer, -1 for none */
    JSValue run_timers;     /* () → runs those that are due */
    JSValue forget_timers;  /* () → drops all of them */
    JSValue await_value;    /* (value, called) → promise of {value} */
} hooks;

static bool has_timers;

/* Started calls that have not been settled: by id, the promise's two functions and what an
 * error should say about where it came from. */
typedef struct {
    int32_t id;
    int32_t line, column; /* of the call in guest code; line 0: unknown */
    JSValue resolve, reject, module, function;
} PendingCall;
static PendingCall *pending;
static uint32_t pending_count, pending_capacity;

/* The frame that a reply holds, parsed. */
static JSValue read_frame(JSContext *ctx, int32_t length)
{
    JSValue frame;
    if (length < 0)
        return JS_ThrowInternalError(ctx, "the host refused the call");
    if ((uint32_t)length < REPLY_BYTES) {
        reply_buffer[length] = 0;
        return JS_ParseJSON(ctx, reply_buffer, length, "<reply>");
    }
    char *text = js_malloc(ctx, (size_t)length + 1); /* throws a catchable out-of-memory error */
    if (!text)
        return JS_EXCEPTION;
    if (host_take(text, length) != length) {
        js_free(ctx, text);
        return JS_ThrowInternalError(ctx, "the host's reply was lost");
    }
    text[length] = 0;
    frame = JS_ParseJSON(ctx, text, length, "<reply>");
    js_free(ctx, text);
    return frame;
}

/* The names of frame fields, made once. */
typedef enum {
    FIELD_OK, FIELD_ERROR, FIELD_ID, FIELD_VALUE, FIELD_MESSAGE,
    FIELD_SOURCE, FIELD_SEED, FIELD_FILE, FIELD_STACK, FIELD_COUNT,
} Field;
static const char *const field_names[FIELD_COUNT] = {
    "ok", "error", "id", "value", "message", "source", "seed", "file", "stack",
};
static JSAtom fields[FIELD_COUNT];

static bool make_fields(JSContext *ctx)
{
    for (int i = 0; i < FIELD_COUNT; i++)
        if ((fields[i] = JS_NewAtom(ctx, field_names[i])) == JS_ATOM_NULL)
            return false;
    return true;
}

/* An own property, untouched by whatever guest code did to Object.prototype. */
static int own_property(JSContext *ctx, JSValueConst object, Field field, JSValue *value)
{
    JSPropertyDescriptor property;
    int found = JS_GetOwnProperty(ctx, &property, object, fields[field]);
    if (found > 0)
        *value = property.value; /* a parsed frame has data properties only */
    return found;
}

/* The value of a reply frame; an error frame is thrown as a ToolError. `frame` is consumed. */
static JSValue unwrap_reply(JSContext *ctx, JSValue frame, JSValueConst module, JSValueConst function,
                            JSValueConst stack)
{
    JSValue value = JS_UNDEFINED, error;
    if (JS_IsException(frame))
        return frame;
    int found = own_property(ctx, frame, FIELD_OK, &value);
    if (!found) {
        found = own_property(ctx, frame, FIELD_ERROR, &value);
        if (found > 0) {
            JSValueConst arguments[4] = { value, module, function, stack };
            error = JS_Call(ctx, hooks.tool_error, JS_UNDEFINED, 4, arguments);
            JS_FreeValue(ctx, value);
            value = JS_IsException(error) ? error : JS_Throw(ctx, error);
        } else if (!found) {
            value = JS_ThrowInternalError(ctx, "the host's reply has neither value nor error");
        }
    }
    JS_FreeValue(ctx, frame);
    return found < 0 ? JS_EXCEPTION : value;
}

/* Appends one argument as JSON.stringify would write it as an array's element. */
static int append_json(JSContext *ctx, JSONStringifyContext *json, JSValueConst argument)
{
    JSValue value = js_json_check(ctx, json, JS_UNDEFINED, JS_DupValue(ctx, argument), json->empty);
    if (JS_IsException(value))
        return -1;
    if (JS_IsUndefined(value))
        value = JS_NULL;
    return js_json_to_str(ctx, json, JS_UNDEFINED, value, json->empty);
}

/* The request frame of a call: the function's fixed head, its arguments, and the end. Written
 * with the engine's own JSON writer, straight into one buffer: this is the hot path.
 * Freed with JS_FreeCString. */
static const char *call_frame(JSContext *ctx, JSValueConst head, int argc, JSValueConst *argv, size_t *length)
{
    const char *frame = NULL;
    JSValue text = JS_EXCEPTION, empty = js_empty_string(ctx->rt);
    StringBuffer buffer;
    JSONStringifyContext json = { JS_UNDEFINED, JS_NewArray(ctx), JS_UNDEFINED, empty, empty, &buffer };
    string_buffer_init(ctx, &buffer, 256);
    if (JS_IsException(json.stack))
        goto done;
    while (argc > 0 && JS_IsUndefined(argv[argc - 1]))
        argc--; /* f(a, undefined) is f(a) */
    string_buffer_concat_value(&buffer, head);
    string_buffer_putc8(&buffer, '[');
    for (int i = 0; i < argc; i++) {
        if (i)
            string_buffer_putc8(&buffer, ',');
        if (append_json(ctx, &json, argv[i]))
            goto done;
    }
    string_buffer_putc8(&buffer, ']');
    string_buffer_putc8(&buffer, '}');
    text = string_buffer_end(&buffer);
    if (!JS_IsException(text))
        frame = JS_ToCStringLen(ctx, length, text);
done:
    if (JS_IsException(text))
        string_buffer_free(&buffer);
    JS_FreeValue(ctx, text);
    JS_FreeValue(ctx, json.stack);
    JS_FreeValue(ctx, empty);
    return frame;
}

enum { DATA_HEAD, DATA_MODULE, DATA_FUNCTION, DATA_COUNT };

/* A host function as guest code sees it: blocks until the host answers. */
static JSValue call_host_function(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv,
                                  int magic, JSValueConst *data)
{
    size_t length;
    const char *frame = call_frame(ctx, data[DATA_HEAD], argc, argv, &length);
    if (!frame)
        return JS_EXCEPTION;
    int32_t reply = host_call(frame, length, reply_buffer, REPLY_BYTES - 1);
    JS_FreeCString(ctx, frame);
    return unwrap_reply(ctx, read_frame(ctx, reply), data[DATA_MODULE], data[DATA_FUNCTION], JS_UNDEFINED);
}

/* Room for one more pending call is made before the call is started: nothing may fail after. */
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

/* Where guest code is now: the innermost frame that is not the prelude's. */
static void guest_location(JSContext *ctx, int32_t *line, int32_t *column)
{
    *line = *column = 0;
    for (JSStackFrame *frame = ctx->rt->current_stack_frame; frame; frame = frame->prev_frame) {
        JSObject *function = JS_VALUE_GET_OBJ(frame->cur_func);
        if (!js_class_has_bytecode(function->class_id) || !frame->cur_pc)
            continue;
        JSFunctionBytecode *code = function->u.func.function_bytecode;
        const char *file = code->filename ? JS_AtomToCString(ctx, code->filename) : NULL;
        bool is_guest = file && strncmp(file, "prelude/", 8) != 0;
        JS_FreeCString(ctx, file);
        if (is_guest) {
            *line = find_line_num(ctx, code, frame->cur_pc - code->byte_code_buf - 1, column);
            return;
        }
    }
}

/* The same host function in the module's /async twin: answers with a promise. */
static JSValue start_host_function(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv,
                                   int magic, JSValueConst *data)
{
    JSValue functions[2], promise;
    size_t length;
    if (!reserve_pending(ctx))
        return JS_EXCEPTION;
    promise = JS_NewPromiseCapability(ctx, functions);
    if (JS_IsException(promise))
        return promise;
    const char *frame = call_frame(ctx, data[DATA_HEAD], argc, argv, &length);
    bool has_frame = frame != NULL;
    int32_t id = has_frame ? host_start(frame, length) : -1;
    JS_FreeCString(ctx, frame);
    if (id < 0) {
        if (has_frame)
            JS_ThrowInternalError(ctx, "the host refused the call");
        JSValue error = JS_GetException(ctx);
        JS_FreeValue(ctx, JS_Call(ctx, functions[1], JS_UNDEFINED, 1, (JSValueConst *)&error));
        JS_FreeValue(ctx, error);
        JS_FreeValue(ctx, functions[0]);
        JS_FreeValue(ctx, functions[1]);
        return promise;
    }
    PendingCall *call = &pending[pending_count++];
    *call = (PendingCall){
        .id = id,
        .resolve = functions[0],
        .reject = functions[1],
        .module = JS_DupValue(ctx, data[DATA_MODULE]),
        .function = JS_DupValue(ctx, data[DATA_FUNCTION]),
    };
    guest_location(ctx, &call->line, &call->column);
    return promise;
}

/* Settles the promise that a settled frame names. Returns -1 with an exception on a bad frame. */
static int settle(JSContext *ctx, JSValue frame)
{
    JSValue id_value = JS_UNDEFINED, result;
    int32_t id = -1;
    if (JS_IsException(frame))
        return -1;
    if (own_property(ctx, frame, FIELD_ID, &id_value) > 0)
        JS_ToInt32(ctx, &id, id_value);
    JS_FreeValue(ctx, id_value);
    for (uint32_t i = 0; i < pending_count; i++) {
        if (pending[i].id != id)
            continue;
        PendingCall call = pending[i];
        pending[i] = pending[--pending_count];
        char location[64] = "";
        if (call.line > 0)
            snprintf(location, sizeof location, "    at <anonymous> (main.js:%d:%d)\n", (int)call.line, (int)call.column);
        JSValue stack = JS_NewString(ctx, location);
        result = unwrap_reply(ctx, frame, call.module, call.function, stack);
        JS_FreeValue(ctx, stack);
        bool failed = JS_IsException(result);
        if (failed)
            result = JS_GetException(ctx);
        JS_FreeValue(ctx, JS_Call(ctx, failed ? call.reject : call.resolve, JS_UNDEFINED, 1, (JSValueConst *)&result));
        JS_FreeValue(ctx, result);
        JS_FreeValue(ctx, call.resolve);
        JS_FreeValue(ctx, call.reject);
        JS_FreeValue(ctx, call.module);
        JS_FreeValue(ctx, call.function);
        return 0;
    }
    JS_FreeValue(ctx, frame);
    JS_ThrowInternalError(ctx, "the host settled a call that was not started");
    return -1;
}
