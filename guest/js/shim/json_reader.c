/* SECURITY: reads the JSON of the host's frames, in one pass and in a fifth of the time of the engine's JSON.parse,
 * with the same result. What servers said is in there.
 *
 * What is not JSON is left to the engine's own parser, which says what is wrong with it. */

/* A level of nesting counts as so many bytes more of the stack that the run may use than it takes of that: most of what
 * it takes is of the native stack, which has a fixed size for each byte of this one. */
enum { LEVEL_BYTES = 16 };

/* An array; the reader is after its bracket. */
static JSValue read_array(JsonReader *reader)
{
    const uint32_t base = reader->count;
    skip_space(reader);
    if (*reader->at == ']') {
        reader->at++;
        return JS_NewArray(reader->ctx);
    }
    for (;;) {
        if (!keep_next(reader))
            return JS_EXCEPTION;
        const uint8_t separator = read_separator(reader, ']');
        if (!separator)
            return malformed(reader);
        if (separator == ']')
            break;
    }
    const uint32_t count = reader->count - base;
    reader->count = base; /* what follows takes them over, even if it fails */
    return JS_NewArrayFrom(reader->ctx, count, reader->values + base);
}

static inline bool read_word(JsonReader *reader, const char *word, size_t length)
{
    if (reader->end - reader->at < (ptrdiff_t)length || memcmp(reader->at, word, length))
        return false;
    reader->at += length;
    return true;
}

static JSValue read_value(JsonReader *reader)
{
    const uint8_t first = *reader->at;
    switch (first) {
    case '"':
        return read_string(reader);
    case '{':
    case '[':
        if (js_check_stack_overflow(reader->ctx->rt, (size_t)LEVEL_BYTES * reader->depth))
            return JS_ThrowStackOverflow(reader->ctx);
        reader->at++;
        reader->depth++;
        JSValue value = first == '{' ? read_object(reader) : read_array(reader);
        reader->depth--;
        return value;
    case 't':
        return read_word(reader, "true", 4) ? JS_TRUE : malformed(reader);
    case 'f':
        return read_word(reader, "false", 5) ? JS_FALSE : malformed(reader);
    case 'n':
        return read_word(reader, "null", 4) ? JS_NULL : malformed(reader);
    default:
        return read_number(reader);
    }
}

/* Nothing becomes garbage while JSON is read, but every collection looks at all of what has been read so far. So for
 * large texts there is at most one, before. Returns the threshold for end_large_text. */
static size_t begin_large_text(JSRuntime *rt, size_t length)
{
    enum { MEMORY_PER_BYTE = 6 }; /* or a little more: nothing depends on it */
    size_t threshold = rt->malloc_gc_threshold;
    if (rt->malloc_state.malloc_size + MEMORY_PER_BYTE * length > threshold) {
        JS_RunGC(rt);
        threshold = 0;
    }
    rt->malloc_gc_threshold = SIZE_MAX;
    return threshold;
}

static void end_large_text(JSRuntime *rt, size_t threshold)
{
    const size_t size = rt->malloc_state.malloc_size; /* as the engine does after a collection */
    rt->malloc_gc_threshold = threshold ? threshold : size + (size >> 1);
}

/* The value of a JSON text, which a zero follows. */
static JSValue read_json(JSContext *ctx, const char *text, size_t length)
{
    enum { LARGE_TEXT = 16384 };
    JsonReader reader;
    reader.ctx = ctx;
    reader.at = (const uint8_t *)text;
    reader.end = reader.at + length;
    reader.values = reader.first_values;
    reader.count = reader.depth = 0;
    reader.capacity = FIRST_VALUES;
    reader.is_malformed = false;
    memset(reader.patterns, 0, sizeof reader.patterns);

    const size_t threshold = length < LARGE_TEXT ? 0 : begin_large_text(ctx->rt, length);
    skip_space(&reader);
    JSValue value = read_value(&reader);
    skip_space(&reader);
    if (!JS_IsException(value) && reader.at != reader.end) {
        JS_FreeValue(ctx, value);
        value = malformed(&reader);
    }
    for (uint32_t i = 0; i < reader.count; i++)
        JS_FreeValue(ctx, reader.values[i]);
    if (reader.values != reader.first_values)
        js_free(ctx, reader.values);
    for (int i = 0; i < PATTERNS; i++)
        if (reader.patterns[i])
            js_free_shape(ctx->rt, reader.patterns[i]);
    if (length >= LARGE_TEXT)
        end_large_text(ctx->rt, threshold);
    if (reader.is_malformed)
        return JS_ParseJSON(ctx, text, length, "<reply>");
    if (JS_IsException(value) && JS_IsNull(ctx->rt->current_exception)) {
        refill_reserve(); /* there was no memory even for the error, but now there is */
        JS_ThrowOutOfMemory(ctx);
    }
    return value;
}
