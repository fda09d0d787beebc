/* The engine's allocator: the first failed allocation frees a reserve, so that the out-of-memory error itself can
 * still be created, thrown and caught. */
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

/* Each block is preceded by its size. The engine counts what it has by the size of each block when it
 * is made and when it is freed, and stops when the count runs below zero; the C library's own
 * malloc_usable_size does not give the same answer both times. */
typedef struct {
    size_t size;
    _Alignas(16) uint8_t data[];
} Block;

static void *sized(Block *block, size_t size)
{
    if (!block)
        return allocation_failed();
    block->size = size;
    return block->data;
}

static Block *block_of(const void *p) { return (Block *)((uint8_t *)p - offsetof(Block, data)); }

static void *engine_malloc(void *opaque, size_t size)
{
    return size > PTRDIFF_MAX ? allocation_failed() : sized(malloc(sizeof(Block) + size), size);
}

static void *engine_calloc(void *opaque, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX)
        return allocation_failed();
    return sized(calloc(1, sizeof(Block) + bytes), bytes);
}

static void engine_free(void *opaque, void *p)
{
    if (p)
        free(block_of(p));
}

static void *engine_realloc(void *opaque, void *old, size_t size)
{
    if (size > PTRDIFF_MAX)
        return allocation_failed();
    return sized(realloc(old ? block_of(old) : NULL, sizeof(Block) + size), size);
}

static size_t engine_usable_size(const void *p) { return p ? block_of(p)->size : 0; }

static const JSMallocFunctions engine_allocator = {
    engine_calloc, engine_malloc, engine_free, engine_realloc, engine_usable_size,
};

/* How large an arena of the engine's small-block allocator is to be: a page, but the first of each
 * block size that a run needs only a part of one. */
enum { ARENA_BYTES = 4096, FIRST_ARENA_BYTES = 512 };
static bool first_arena_is_small[JS_ARENA_BLOCK_SIZE_COUNT];

static size_t toolbridge_arena_size(int block_size_idx)
{
    bool is_small = first_arena_is_small[block_size_idx];
    first_arena_is_small[block_size_idx] = false;
    size_t least = sizeof(JSArena) + arena_block_sizes[block_size_idx];
    return !is_small ? ARENA_BYTES : least > FIRST_ARENA_BYTES ? least : FIRST_ARENA_BYTES;
}

/* Build time: allocates every hole in the heap, so that a run's own allocations lie side by side at its end, and
 * dirty few of the copy-on-write pages that it shares with all other runs. */
static void plug_heap_holes(JSRuntime *rt)
{
    memset(first_arena_is_small, true, sizeof first_arena_is_small);
    for (int i = 0; i < JS_ARENA_BLOCK_SIZE_COUNT; i++)
        while (!list_empty(&rt->arena_state.free_arena_list[i]))
            js_arena_malloc(rt, arena_block_sizes[i] - sizeof(JSMallocBlockHeader));
    char *end = malloc(RESERVE_BYTES); /* no hole is that large: this is beyond all of them */
    if (!end)
        return;
    for (size_t size = RESERVE_BYTES / 2; size >= 8; size -= size > 512 ? size / 4 : 8) {
        char *plug;
        while ((plug = malloc(size)) && plug < end) {
        }
        free(plug);
    }
    free(end);
}

static void refill_reserve(void)
{
    if (!reserve)
        reserve = malloc(RESERVE_BYTES);
}

static void renew_reserve(void)
{
    ran_out_of_memory = false;
    refill_reserve();
}
