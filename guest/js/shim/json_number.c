/* Numbers of JSON, exactly as JSON.parse reads them. */

#include "powers_of_ten.c" /* made by guest/js/powers_of_ten.py */

static inline bool is_digit_byte(uint8_t byte) { return byte - '0' <= 9u; }

/* Every digit from `at` on is put behind those of `*digits`, which may overflow. */
static inline const uint8_t *take_digits(const uint8_t *at, uint64_t *digits)
{
    for (; is_digit_byte(*at); at++)
        *digits = *digits * 10 + (*at - '0');
    return at;
}

/* digits × 10^exponent as the nearest double, by 64 × 128 bits (Lemire, Number Parsing at a Gigabyte per Second, 2021;
 * Mushtak and Lemire, 2023, prove that this many bits always decide). False if the exponent is too large or
 * too small for the table; with those in the table, nothing is subnormal or infinite. */
static bool round_decimal(uint64_t digits, int32_t exponent, double *value)
{
    if (exponent < LEAST_POWER || exponent > MOST_POWER)
        return false;
    *value = 0;
    if (!digits)
        return true;
    const uint64_t *power = powers_of_ten[exponent - LEAST_POWER];
    const int zeros = __builtin_clzll(digits);
    digits <<= zeros;
    unsigned __int128 product = (unsigned __int128)digits * power[0];
    if ((product >> 64 & 0x1ff) == 0x1ff) /* what lies below may carry into the bits that count */
        product += (uint64_t)((unsigned __int128)digits * power[1] >> 64);
    const uint64_t upper = product >> 64, lower = product;
    const int is_wide = upper >> 63, shift = is_wide + 9; /* leaves 53 bits and the one that rounds */
    const int32_t scale = (217706 * exponent >> 16) + 63 - zeros + is_wide; /* 217706 / 65536 is log2(10) */
    uint64_t bits = upper >> shift;
    if (lower <= 1 && exponent >= -4 && exponent <= 23 && (bits & 3) == 1 && bits << shift == upper)
        bits &= ~1ull; /* exactly between two doubles: to the even one, which is below */
    bits = (bits + (bits & 1)) >> 1; /* may be 2^53 now: the addition below then carries into the exponent */
    JSFloat64Union result = { .u64 = ((uint64_t)(scale + 1022) << 52) + bits };
    *value = result.d;
    return true;
}

/* A number; the reader is at its first byte, a digit or a minus if it is one. Most have few digits: those are an integer
 * that a double holds exactly, times or divided by a power of ten that a double holds exactly, so that there is one
 * rounding and it is the right one. Few are left to the C library, which computes in numbers of 128 bits that the
 * guest's machine doesn't have. */
static JSValue read_number(JsonReader *reader)
{
    static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                     1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    enum { LARGEST_POWER = 22, SAFE_DIGITS = 19 };
    const uint8_t *begin = reader->at, *at = begin, *first;
    const bool is_negative = *at == '-';
    uint64_t digits = 0;
    int32_t exponent = 0, count;

    first = at += is_negative;
    at = take_digits(at, &digits);
    count = at - first;
    if (!count || (*first == '0' && count > 1))
        return malformed(reader);
    if (*at != '.' && (*at | 0x20) != 'e' && count <= SAFE_DIGITS) {
        reader->at = at;
        if (digits <= INT32_MAX && (digits || !is_negative))
            return js_int32(is_negative ? -(int32_t)digits : (int32_t)digits);
        return js_float64(is_negative ? -(double)digits : (double)digits); /* rounds as it should */
    }
    if (*at == '.') {
        first = ++at;
        at = take_digits(at, &digits);
        if (at == first)
            return malformed(reader);
        exponent = first - at;
        count -= exponent;
    }
    if ((*at | 0x20) == 'e') {
        const bool divides = *++at == '-';
        uint64_t power = 0;
        at += *at == '-' || *at == '+';
        first = at;
        at = take_digits(at, &power);
        if (at == first)
            return malformed(reader);
        if (at - first > 4)
            count = SAFE_DIGITS + 1; /* perhaps of zeros */
        exponent += divides ? -(int32_t)power : (int32_t)power;
    }
    reader->at = at;
    double value;
    if (digits <= 1ull << 53 && exponent <= LARGEST_POWER && exponent >= -LARGEST_POWER && count <= SAFE_DIGITS)
        value = exponent < 0 ? (double)digits / powers[-exponent] : (double)digits * powers[exponent];
    else if (count > SAFE_DIGITS || !round_decimal(digits, exponent, &value))
        return js_float64(strtod((const char *)begin, NULL));
    return js_float64(is_negative ? -value : value);
}
