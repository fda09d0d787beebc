/* The allocator that the engine gets: the first failure gives back a reserve, so that the
 * out-of-memory error itself can still be made, thrown and caught. */
enum { RESERVE_BYTES = 256 << 10 };

static void *reserve;
static bool ran_out_of_memory; /* since the run began */

static void *allocation_failed(void)
{
    ran_out_of_memory = true;
    free(reserve);
    reserve = NULL;
    return NULL;
}

static void *engine_calloc(void *opaque, size_t count, size_t size)
{
    void *p = calloc(count, size);
    return p ? p : allocation_failed();
}

static void *engine_malloc(void *opaque, size_t size)
{
    void *p = malloc(size);
    return p ? p : allocation_failed();
}

static void engine_free(void *opaque, void *p) { free(p); }

static void *engine_realloc(void *opaque, void *old, size_t size)
{
    void *p = realloc(old, size);
    return p || !size ? p : allocation_failed();
}

static size_t engine_usable_size(const void *p) { return malloc_usable_size((void *)p); }

static const JSMallocFunctions engine_allocator = {
    engine_calloc, engine_malloc, engine_free, engine_realloc, engine_usable_size,
};

static void renew_reserve(void)
{
    ran_out_of_memory = false;
    if (!reserve)
        reserve = malloc(RESERVE_BYTES);
}
