/* JSON reader: its state, and strings. */

/* Shapes of the last object at each depth: records in a list have the same keys in the same order. */
enum { PATTERNS = 8, FIRST_VALUES = 32 };

typedef struct {
    JSContext *ctx;
    const uint8_t *at, *end; /* *end is 0, which is part of no token: nothing is read beyond it */
    JSValue *values;         /* those of arrays and objects that have not ended yet: all of them are ours */
    uint32_t count, capacity;
    uint32_t depth;
    bool is_malformed; /* the text isn't JSON; no exception is pending */
    JSShape *patterns[PATTERNS];
    JSValue first_values[FIRST_VALUES]; /* so that small frames need no memory */
} JsonReader;

static JSValue malformed(JsonReader *reader)
{
    reader->is_malformed = true;
    return JS_EXCEPTION;
}

static inline void skip_space(JsonReader *reader)
{
    const uint8_t *at = reader->at;
    while (*at <= ' ' && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    reader->at = at;
}

/* The first byte from `at` on that doesn't stand for itself: a quote, a backslash, a control character, or one of
 * several bytes of a character. Looks at eight bytes at a time: a byte's top bit is set where it is one of these (and
 * perhaps beyond the first that is). */
static inline const uint8_t *plain_end(const uint8_t *at, const uint8_t *end)
{
    const uint64_t each = 0x0101010101010101;
    for (; end - at >= 8; at += 8) {
        uint64_t bytes;
        memcpy(&bytes, at, 8);
        uint64_t found = bytes | (bytes - each * ' ') | ((bytes ^ each * '"') - each) | ((bytes ^ each * '\\') - each);
        if (found &= each * 0x80)
            return at + __builtin_ctzll(found) / 8;
    }
    while (*at >= ' ' && *at < 0x80 && *at != '"' && *at != '\\')
        at++; /* ends at *end */
    return at;
}

/* Text in UTF-8 without escapes as a string. */
static JSValue string_of_text(JsonReader *reader, const uint8_t *text, size_t length)
{
    size_t units;
    int kind = utf8_scan((const char *)text, length, &units);
    if (kind & UTF8_HAS_ERRORS)
        return malformed(reader);
    JSString *string = js_alloc_string(reader->ctx, units, kind != UTF8_NON_ASCII);
    if (!string)
        return JS_EXCEPTION;
    if (kind == UTF8_NON_ASCII)
        utf8_decode_buf8(str8(string), units + 1, (const char *)text, length);
    else
        utf8_decode_buf16(str16(string), units, (const char *)text, length);
    return JS_MKPTR(JS_TAG_STRING, string);
}

/* The character of an escape, after its backslash; -1 if it is none. */
static int32_t read_escape(JsonReader *reader)
{
    static const char letters[] = "bfnrt\"\\/", meanings[] = "\b\f\n\r\t\"\\/";
    const uint8_t letter = *reader->at;
    if (letter == 'u') {
        int32_t unit = 0;
        reader->at++;
        for (int i = 0; i < 4; i++) {
            int digit = from_hex(*reader->at);
            if (digit < 0)
                return -1;
            unit = unit << 4 | digit;
            reader->at++;
        }
        return unit;
    }
    const char *found = letter ? strchr(letters, letter) : NULL;
    if (!found)
        return -1;
    reader->at++;
    return meanings[found - letters];
}

/* A string with escapes: as much as stands for itself at a time. `begin` is after its opening quote. */
static JSValue read_escaped_string(JsonReader *reader, const uint8_t *begin)
{
    StringBuffer buffer;
    if (string_buffer_init(reader->ctx, &buffer, 48))
        return JS_EXCEPTION;
    reader->at = begin;
    for (;;) {
        const uint8_t *from = reader->at, *next;
        int32_t character;
        reader->at = plain_end(from, reader->end);
        if (reader->at > from && string_buffer_write8(&buffer, from, reader->at - from))
            goto failed;
        if (*reader->at == '"')
            break;
        if (*reader->at == '\\') {
            reader->at++;
            character = read_escape(reader);
        } else {
            character = *reader->at < ' ' ? -1 : (int32_t)utf8_decode(reader->at, &next);
            if (character >= 0 && next == reader->at + 1)
                character = -1;
            reader->at = next;
        }
        if (character < 0) {
            malformed(reader);
            goto failed;
        }
        if (string_buffer_putc(&buffer, character))
            goto failed;
    }
    reader->at++;
    return string_buffer_end(&buffer);
failed:
    string_buffer_free(&buffer);
    return JS_EXCEPTION;
}

/* A string; the reader is at its opening quote. */
static JSValue read_string(JsonReader *reader)
{
    const uint8_t *begin = ++reader->at, *stop = plain_end(begin, reader->end);
    if (*stop == '"') {
        reader->at = stop + 1;
        return stop == begin ? js_empty_string(reader->ctx->rt)
                             : js_new_string8_len(reader->ctx, (const char *)begin, stop - begin);
    }
    while (*stop >= 0x80) {
        do
            stop++;
        while (*stop >= 0x80);
        stop = plain_end(stop, reader->end);
    }
    if (*stop == '\\')
        return read_escaped_string(reader, begin);
    if (*stop != '"')
        return malformed(reader);
    reader->at = stop + 1;
    return string_of_text(reader, begin, stop - begin);
}
