/* SECURITY: the JSON parser for frames of the host, which carry text from servers. One pass, in a fifth of the time of
 * the engine's JSON.parse, with the same result.
 *
 * Malformed text is handed to the engine's own parser for its error message. */

/* A level of nesting counts as so many bytes more of the stack that the run may use than it takes of that: most of what
 * it takes is of the native stack, which has a fixed size for each byte of this one. */
enum { LEVEL_BYTES = 16 };

static JSValue read_value(JsonReader *reader);

/* Pushes a value (consumed) on the stack of values until its array or object has ended. */
static inline bool keep(JsonReader *reader, JSValue value)
{
    if (unlikely(reader->count == reader->capacity)) {
        const bool is_first = reader->values == reader->first_values;
        const uint32_t capacity = reader->capacity * 2;
        JSValue *larger = js_realloc(reader->ctx, is_first ? NULL : reader->values, capacity * sizeof *larger);
        if (!larger) {
            JS_FreeValue(reader->ctx, value);
            return false;
        }
        if (is_first)
            memcpy(larger, reader->first_values, sizeof reader->first_values);
        reader->values = larger;
        reader->capacity = capacity;
    }
    reader->values[reader->count++] = value;
    return true;
}

/* Reads a value and pushes it. */
static inline bool keep_next(JsonReader *reader)
{
    JSValue value = read_value(reader);
    return !JS_IsException(value) && keep(reader, value);
}

/* The byte after an element or a member: ',' before another one, `close` at the end, 0 if malformed. */
static inline uint8_t read_separator(JsonReader *reader, uint8_t close)
{
    skip_space(reader);
    const uint8_t found = *reader->at;
    if (found != ',' && found != close)
        return 0;
    reader->at++;
    if (found == ',')
        skip_space(reader);
    return found;
}

/* The colon after a member's name, and the space around it. */
static inline bool read_colon(JsonReader *reader)
{
    skip_space(reader);
    if (*reader->at != ':')
        return false;
    reader->at++;
    skip_space(reader);
    return true;
}

/* Whether the next member's name is the one of a pattern; it is then read. The names of patterns stand for themselves:
 * they are the bytes that come, up to the quote. */
static inline bool read_known_name(JsonReader *reader, JSAtom atom)
{
    JSString *name = reader->ctx->rt->atom_array[atom];
    const uint8_t *at = reader->at, *bytes = str8(name);
    const uint32_t length = name->len;
    if (*at++ != '"' || reader->end - at <= (ptrdiff_t)length)
        return false;
    for (uint32_t i = 0; i < length; i++)
        if (at[i] != bytes[i])
            return false;
    if (at[length] != '"')
        return false;
    reader->at = at + length + 1;
    return true;
}

/* A member's name. JS_ATOM_NULL if there is none. `*is_plain` is made false unless it may be part of a pattern. */
static JSAtom read_name(JsonReader *reader, bool *is_plain)
{
    JSContext *ctx = reader->ctx;
    JSAtom atom;
    if (*reader->at != '"') {
        malformed(reader);
        return JS_ATOM_NULL;
    }
    const uint8_t *begin = reader->at + 1, *stop = plain_end(begin, reader->end);
    if (*stop == '"') {
        reader->at = stop + 1;
        atom = JS_NewAtomLen(ctx, (const char *)begin, stop - begin);
        if (__JS_AtomIsTaggedInt(atom) || ctx->rt->atom_array[atom]->is_wide_char)
            *is_plain = false;
    } else {
        JSValue name = read_string(reader);
        if (JS_IsException(name))
            return JS_ATOM_NULL;
        atom = JS_NewAtomStr(ctx, JS_VALUE_GET_STRING(name));
        *is_plain = false;
    }
    if (atom == JS_ATOM_NULL)
        JS_ThrowOutOfMemory(ctx);
    return atom;
}

/* Defines a member of an object under construction, as JSON.parse does: an own property, even if named __proto__; the
 * last one of a name wins. `value` is consumed. */
static bool define_member(JSContext *ctx, JSObject *object, JSAtom name, JSValue value)
{
    JSProperty *property;
    if (find_own_property(&property, object, name)) {
        set_value(ctx, &property->u.value, value);
        return true;
    }
    property = add_property(ctx, object, name, JS_PROP_C_W_E);
    if (!property) {
        JS_FreeValue(ctx, value);
        return false;
    }
    property->u.value = value;
    return true;
}

/* Creates an object with the first names of a pattern and the values pushed since `base`; replaces those values by it. */
static JSObject *begin_object(JsonReader *reader, JSShape *pattern, uint32_t base)
{
    const uint32_t count = reader->count - base;
    JSValue object = JS_NewObject(reader->ctx);
    if (JS_IsException(object) || !keep(reader, object))
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        JSValue value = reader->values[base + i];
        reader->values[base + i] = JS_UNDEFINED;
        if (!define_member(reader->ctx, JS_VALUE_GET_OBJ(object), get_shape_prop(pattern)[i].atom, value))
            return NULL;
    }
    reader->values[base] = object;
    reader->count = base + 1;
    return JS_VALUE_GET_OBJ(object);
}

/* The members of an object from here on, one by one. */
static JSValue read_members(JsonReader *reader, JSShape **pattern, uint32_t base)
{
    JSContext *ctx = reader->ctx;
    bool is_plain = true;
    JSObject *object = begin_object(reader, pattern ? *pattern : NULL, base);
    if (!object)
        return JS_EXCEPTION;
    for (;;) {
        JSAtom name = read_name(reader, &is_plain);
        if (name == JS_ATOM_NULL)
            return JS_EXCEPTION;
        JSValue value = read_colon(reader) ? read_value(reader) : malformed(reader);
        const bool is_defined = !JS_IsException(value) && define_member(ctx, object, name, value);
        JS_FreeAtom(ctx, name);
        if (!is_defined)
            return JS_EXCEPTION;
        const uint8_t separator = read_separator(reader, '}');
        if (!separator)
            return malformed(reader);
        if (separator == '}')
            break;
    }
    if (pattern && is_plain && object->shape->is_hashed) {
        if (*pattern)
            js_free_shape(ctx->rt, *pattern);
        *pattern = js_dup_shape(object->shape);
    }
    return reader->values[reader->count = base];
}

/* An object; the reader is after its brace. As long as the names are those of the last object at this depth, its
 * values are only collected: with all of them the object is made at once. */
static JSValue read_object(JsonReader *reader)
{
    _Static_assert(sizeof(JSProperty) == sizeof(JSValue), "the values of an object are its properties");
    const uint32_t base = reader->count;
    JSShape **pattern = reader->depth < PATTERNS ? &reader->patterns[reader->depth] : NULL;
    JSShape *shape = pattern ? *pattern : NULL;
    const uint32_t known = shape ? shape->prop_count : 0;
    skip_space(reader);
    if (*reader->at == '}') {
        reader->at++;
        return JS_NewObject(reader->ctx);
    }
    for (uint32_t i = 0; i < known; i++) {
        if (!read_known_name(reader, get_shape_prop(shape)[i].atom))
            break;
        if (!read_colon(reader))
            return malformed(reader);
        if (!keep_next(reader))
            return JS_EXCEPTION;
        const uint8_t separator = read_separator(reader, '}');
        if (!separator)
            return malformed(reader);
        if (separator == ',')
            continue;
        if (i + 1 == known) {
            reader->count = base; /* JS_NewObjectFromShape takes ownership, even if it fails */
            return JS_NewObjectFromShape(reader->ctx, js_dup_shape(shape), JS_CLASS_OBJECT,
                                         (JSProperty *)(reader->values + base));
        }
        if (!begin_object(reader, shape, base))
            return JS_EXCEPTION;
        return reader->values[reader->count = base];
    }
    return read_members(reader, pattern, base);
}

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
    reader->count = base; /* JS_NewArrayFrom takes ownership, even if it fails */
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
    if (JS_IsException(value)) {
        refill_reserve(); /* the half-read values are free again */
        if (JS_IsNull(ctx->rt->current_exception)) /* there was no memory even for the error */
            JS_ThrowOutOfMemory(ctx);
    }
    return value;
}
