/* Randomness: ChaCha20 keyed by the run frame's 32-byte seed. The snapshot would otherwise give
 * every run the same numbers; with a seed chosen by the host a run can be repeated exactly. */
static uint32_t random_key[8];
static uint64_t random_counter;
static uint8_t random_block[64];
static unsigned random_used = sizeof random_block;

static inline uint32_t rotate_left(uint32_t x, int n) { return x << n | x >> (32 - n); }

static void quarter_round(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
    *a += *b; *d = rotate_left(*d ^ *a, 16);
    *c += *d; *b = rotate_left(*b ^ *c, 12);
    *a += *b; *d = rotate_left(*d ^ *a, 8);
    *c += *d; *b = rotate_left(*b ^ *c, 7);
}

static void next_random_block(void)
{
    static const uint32_t constants[4] = { 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574 };
    uint32_t input[16], x[16];
    memcpy(input, constants, sizeof constants);
    memcpy(input + 4, random_key, sizeof random_key);
    memcpy(input + 12, &random_counter, sizeof random_counter);
    input[14] = input[15] = 0;
    random_counter++;
    memcpy(x, input, sizeof x);
    for (int i = 0; i < 10; i++) {
        for (int j = 0; j < 4; j++)
            quarter_round(&x[j], &x[4 + j], &x[8 + j], &x[12 + j]);
        for (int j = 0; j < 4; j++)
            quarter_round(&x[j], &x[4 + (j + 1) % 4], &x[8 + (j + 2) % 4], &x[12 + (j + 3) % 4]);
    }
    for (int i = 0; i < 16; i++)
        x[i] += input[i];
    memcpy(random_block, x, sizeof x);
    random_used = 0;
}

static void random_bytes(uint8_t *out, size_t length)
{
    while (length) {
        if (random_used == sizeof random_block)
            next_random_block();
        size_t n = sizeof random_block - random_used;
        if (n > length)
            n = length;
        memcpy(out, random_block + random_used, n);
        memset(random_block + random_used, 0, n);
        random_used += n;
        out += n;
        length -= n;
    }
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* seed: 64 lower-case hexadecimal digits; also seeds Math.random */
static bool seed_random(JSContext *ctx, const char *seed, size_t length)
{
    uint8_t key[32];
    if (length != 2 * sizeof key)
        return false;
    for (size_t i = 0; i < sizeof key; i++) {
        int high = hex_digit(seed[2 * i]), low = hex_digit(seed[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        key[i] = high << 4 | low;
    }
    memcpy(random_key, key, sizeof key);
    random_counter = 0;
    random_used = sizeof random_block;
    random_bytes((uint8_t *)&ctx->random_state, sizeof ctx->random_state);
    ctx->random_state |= 1;
    return true;
}
