/* The host imports: everything that the guest can reach. guest/WIRE.md is their specification. */
#define EXPORT(name) __attribute__((export_name(name)))
#define IMPORT(name) __attribute__((import_module("toolbridge"), import_name(name)))

IMPORT("call") int32_t import_call(const char *request, uint32_t length, char *reply, uint32_t capacity);
IMPORT("start") int32_t import_start(const char *request, uint32_t length);
IMPORT("wait") int32_t import_wait(int64_t microseconds, char *reply, uint32_t capacity);
IMPORT("take") int32_t import_take(char *buffer, uint32_t length);
IMPORT("log") void import_log(int32_t stream, const char *text, uint32_t length);
IMPORT("now") int64_t import_now(int32_t clock);
IMPORT("leave") void import_leave(void);

/* The mailbox of a run begun by `run_inbox`, in front of the inbox: requests to the host, made without calling any
 * import but `leave` (epoch interruption). */
typedef enum {
    REQUEST_NOTHING, REQUEST_CALL, REQUEST_START, REQUEST_WAIT, REQUEST_TAKE, REQUEST_LOG, REQUEST_NOW,
} Operation;
typedef struct {
    volatile uint32_t operation; /* the host makes it REQUEST_NOTHING when it has answered */
    uint32_t unused;
    volatile int64_t answer;
    int64_t number;
    uint32_t arguments[4];
} Mailbox;
static Mailbox *mailbox;
static bool uses_mailbox;

/* A real call, not inlined: compiled code checks the epoch at the beginning of a function, and yields if `leave` has
 * advanced it. A loop alone would check only at its next turn, after one more `leave`. */
static __attribute__((noinline)) bool is_unanswered(void)
{
    return mailbox->operation != REQUEST_NOTHING;
}

/* Blocks until the host has answered a request in the mailbox. */
static __attribute__((noinline)) int64_t mailbox_request(Operation operation, int64_t number, uint32_t first,
                                                         uint32_t second, uint32_t third, uint32_t fourth)
{
    mailbox->number = number;
    mailbox->arguments[0] = first;
    mailbox->arguments[1] = second;
    mailbox->arguments[2] = third;
    mailbox->arguments[3] = fourth;
    mailbox->operation = operation;
    do
        import_leave();
    while (is_unanswered());
    return mailbox->answer;
}

static int32_t host_call(const char *request, uint32_t length, char *reply, uint32_t capacity)
{
    if (uses_mailbox)
        return (int32_t)mailbox_request(REQUEST_CALL, 0, (uintptr_t)request, length, (uintptr_t)reply, capacity);
    return import_call(request, length, reply, capacity);
}

static int32_t host_start(const char *request, uint32_t length)
{
    if (uses_mailbox)
        return (int32_t)mailbox_request(REQUEST_START, 0, (uintptr_t)request, length, 0, 0);
    return import_start(request, length);
}

static int32_t host_wait(int64_t microseconds, char *reply, uint32_t capacity)
{
    if (uses_mailbox)
        return (int32_t)mailbox_request(REQUEST_WAIT, microseconds, (uintptr_t)reply, capacity, 0, 0);
    return import_wait(microseconds, reply, capacity);
}

static int32_t host_take(char *buffer, uint32_t length)
{
    if (uses_mailbox)
        return (int32_t)mailbox_request(REQUEST_TAKE, 0, (uintptr_t)buffer, length, 0, 0);
    return import_take(buffer, length);
}

static void host_log(int32_t stream, const char *text, uint32_t length)
{
    if (uses_mailbox)
        mailbox_request(REQUEST_LOG, 0, (uint32_t)stream, (uintptr_t)text, length, 0);
    else
        import_log(stream, text, length);
}

static int64_t host_now(int32_t clock)
{
    if (uses_mailbox)
        return mailbox_request(REQUEST_NOW, 0, (uint32_t)clock, 0, 0, 0);
    return import_now(clock);
}
