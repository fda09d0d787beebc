/* Host functions as guest code calls them: request frames out, replies in. */

/* Frames from the host up to this size need no second crossing. Allocated in the heap, so that the variables of this
 * unit, which every run writes to, share few copy-on-write pages. */
enum { INBOX_BYTES = 16384 };
static char *inbox;

/* The prelude's callbacks, registered at build time (native.hooks). */
static struct {
    JSValue import;         /* (specifier, name | undefined) → module, export or promise */
    JSValue tool_error;     /* (error frame, module, function, stack | undefined) → ToolError */
    JSValue place_handles;  /* (value, handles of a reply frame) → the value with its handles */
    JSValue describe_error; /* (thrown value, its stack if it has none itself) → {name, message, stack} */
    JSValue next_timer;     /* () → milliseconds until the next timer, -1 for none */
    JSValue run_timers;     /* () → runs those that are due */
    JSValue forget_timers;  /* () → drops all of them */
    JSValue await_value;    /* (value, called) → promise of {value} */
} hooks;

static bool has_timers;

/* The text of a frame from the host: in the inbox, or allocated. Returns NULL with an exception if there is no memory. */
static char *frame_text(JSContext *ctx, int32_t length)
{
    char *text = inbox;
    if (length < 0) {
        JS_ThrowInternalError(ctx, "the host refused the call");
        return NULL;
    }
    if ((uint32_t)length >= INBOX_BYTES) {
        text = js_malloc(ctx, (size_t)length + 1); /* throws a catchable out-of-memory error */
        if (!text)
            return NULL;
        if (host_take(text, length) != length) {
            js_free(ctx, text);
            JS_ThrowInternalError(ctx, "the host's reply was lost");
            return NULL;
        }
    }
    text[length] = 0;
    return text;
}

static void free_frame_text(JSContext *ctx, char *text)
{
    if (text != inbox)
        js_free(ctx, text);
}

/* The names of frame fields, made once. */
typedef enum {
    FIELD_OK, FIELD_ERROR, FIELD_HANDLES, FIELD_ID, FIELD_VALUE, FIELD_MESSAGE,
    FIELD_WIRE, FIELD_SOURCE, FIELD_SEED, FIELD_FILE, FIELD_STACK, FIELD_COUNT,
} Field;
static const char *const field_names[FIELD_COUNT] = {
    "ok", "error", "handles", "id", "value", "message", "wire", "source", "seed", "file", "stack",
};
static JSAtom fields[FIELD_COUNT];

static bool make_fields(JSContext *ctx)
{
    for (int i = 0; i < FIELD_COUNT; i++)
        if ((fields[i] = JS_NewAtom(ctx, field_names[i])) == JS_ATOM_NULL)
            return false;
    return true;
}

/* Reads an own property: changes of Object.prototype by guest code have no effect. */
static int own_property(JSContext *ctx, JSValueConst object, Field field, JSValue *value)
{
    JSPropertyDescriptor property;
    int found = JS_GetOwnProperty(ctx, &property, object, fields[field]);
    if (found > 0)
        *value = property.value; /* a parsed frame has data properties only */
    return found;
}

/* How many fields a parsed frame has. */
static int field_count(JSValueConst frame)
{
    return JS_IsObject(frame) ? JS_VALUE_GET_OBJ(frame)->shape->prop_count : 0;
}

static bool has_known_fields_only(JSContext *ctx, JSValueConst reply)
{
    static const Field known[] = { FIELD_OK, FIELD_ERROR, FIELD_HANDLES, FIELD_ID };
    int count = 0;
    for (size_t i = 0; i < countof(known); i++)
        count += JS_GetOwnProperty(ctx, NULL, reply, fields[known[i]]) > 0;
    return count == field_count(reply);
}

/* The value of a reply, with a handle wherever its frame says that one belongs. `value` is consumed. */
static JSValue with_handles(JSContext *ctx, JSValueConst frame, JSValue value)
{
    JSValue handles;
    int found = own_property(ctx, frame, FIELD_HANDLES, &handles);
    if (!found)
        return value;
    JSValue placed = JS_EXCEPTION;
    if (found > 0) {
        JSValueConst arguments[2] = { value, handles };
        placed = JS_Call(ctx, hooks.place_handles, JS_UNDEFINED, 2, arguments);
        JS_FreeValue(ctx, handles);
    }
    JS_FreeValue(ctx, value);
    return placed;
}

/* The value of a reply frame; an error frame is thrown as a ToolError. `frame` is consumed. */
static JSValue unwrap_reply(JSContext *ctx, JSValue frame, JSValueConst module, JSValueConst function,
                            JSValueConst stack)
{
    JSValue value = JS_UNDEFINED, error;
    if (JS_IsException(frame))
        return frame;
    if (!has_known_fields_only(ctx, frame)) {
        JS_FreeValue(ctx, frame);
        return JS_ThrowInternalError(ctx, "the host's reply has unknown fields");
    }
    int found = own_property(ctx, frame, FIELD_OK, &value);
    if (found > 0) {
        value = with_handles(ctx, frame, value);
    } else if (!found) {
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

/* The value of the reply to a call; an error is thrown. Most replies are `{"ok":` value `}`, and then the
 * value alone is parsed: this is the hot path. */
static JSValue read_reply(JSContext *ctx, int32_t length, JSValueConst module, JSValueConst function)
{
    static const char head[] = "{\"ok\":";
    enum { HEAD = sizeof head - 1 };
    char *text = frame_text(ctx, length);
    if (!text)
        return JS_EXCEPTION;
    const bool has_value_only = length > HEAD + 1 && !memcmp(text, head, HEAD);
    if (has_value_only)
        text[length - 1] = 0;
    JSValue value = has_value_only ? read_json(ctx, text + HEAD, length - HEAD - 1) : read_json(ctx, text, length);
    free_frame_text(ctx, text);
    return has_value_only ? value : unwrap_reply(ctx, value, module, function, JS_UNDEFINED);
}

/* Appends one argument to the frame as JSON.stringify writes an array's element. */
static int append_json(JSContext *ctx, JSONStringifyContext *json, JSValueConst argument)
{
    JSValue value = js_json_check(ctx, json, JS_UNDEFINED, JS_DupValue(ctx, argument), json->empty);
    if (JS_IsException(value))
        return -1;
    if (JS_IsUndefined(value))
        value = JS_NULL;
    return js_json_to_str(ctx, json, JS_UNDEFINED, value, json->empty);
}

/* Whether the arguments of a call are being written: a Handle then stands for itself, elsewhere for its description. */
static bool is_writing_call;

/* Builds the request frame of a call: the function's fixed head, its arguments, and the end, written with the
 * engine's own JSON writer straight into one buffer: this is the hot path.
 * Arguments may run guest code (toJSON, getters), and that may make calls of its own. */
static JSValue call_frame(JSContext *ctx, JSValueConst head, int argc, JSValueConst *argv)
{
    JSValue text = JS_EXCEPTION, empty = js_empty_string(ctx->rt);
    StringBuffer buffer;
    JSONStringifyContext json = { JS_UNDEFINED, JS_NewArray(ctx), JS_UNDEFINED, empty, empty, &buffer };
    const bool was_writing_call = is_writing_call;
    is_writing_call = true;
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
done:
    is_writing_call = was_writing_call;
    if (JS_IsException(text))
        string_buffer_free(&buffer);
    JS_FreeValue(ctx, json.stack);
    JS_FreeValue(ctx, empty);
    return text;
}

enum { DATA_HEAD, DATA_MODULE, DATA_FUNCTION, DATA_COUNT };

/* A host function as guest code calls it: blocks until the host answers. */
static JSValue call_host_function(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv,
                                  int magic, JSValueConst *data)
{
    size_t length;
    JSValue frame = call_frame(ctx, data[DATA_HEAD], argc, argv);
    if (JS_IsException(frame))
        return frame;
    const char *text = JS_ToCStringLen(ctx, &length, frame);
    JS_FreeValue(ctx, frame);
    if (!text)
        return JS_EXCEPTION;
    int32_t reply = host_call(text, length, inbox, INBOX_BYTES - 1);
    JS_FreeCString(ctx, text);
    return read_reply(ctx, reply, data[DATA_MODULE], data[DATA_FUNCTION]);
}
