/* The event loop: runs promise jobs, timers and settled calls until nothing is left to do. */

/* Rejected promises without a handler yet. */
enum { MAX_UNHANDLED = 64 };
static struct {
    JSValue promise, reason;
} unhandled[MAX_UNHANDLED];
static int unhandled_count;

static void track_rejection(JSContext *ctx, JSValueConst promise, JSValueConst reason, bool is_handled, void *opaque)
{
    if (!is_handled) {
        if (unhandled_count < MAX_UNHANDLED) {
            unhandled[unhandled_count].promise = JS_DupValue(ctx, promise);
            unhandled[unhandled_count++].reason = JS_DupValue(ctx, reason);
        }
        return;
    }
    for (int i = 0; i < unhandled_count; i++) {
        if (JS_VALUE_GET_PTR(unhandled[i].promise) == JS_VALUE_GET_PTR(promise)) {
            JS_FreeValue(ctx, unhandled[i].promise);
            JS_FreeValue(ctx, unhandled[i].reason);
            unhandled[i] = unhandled[--unhandled_count];
            return;
        }
    }
}

typedef enum { IDLE, FAILED, REJECTED } LoopEnd;

/* Runs jobs, timers and settled calls until nothing is left. FAILED: an exception is pending;
 * REJECTED: a promise other than `main_promise` was rejected without a handler. */
static LoopEnd run_event_loop(JSValueConst main_promise)
{
    for (;;) {
        JSContext *job_context;
        int ran;
        while ((ran = JS_ExecutePendingJob(runtime, &job_context)) > 0) {
        }
        if (ran < 0)
            return FAILED;
        for (int i = 0; i < unhandled_count; i++)
            if (JS_VALUE_GET_PTR(unhandled[i].promise) != JS_VALUE_GET_PTR(main_promise))
                return REJECTED;
        if (JS_PromiseState(context, main_promise) == JS_PROMISE_REJECTED)
            return IDLE;

        double milliseconds = -1;
        if (has_timers) {
            JSValue next = JS_Call(context, hooks.next_timer, JS_UNDEFINED, 0, NULL);
            if (JS_IsException(next) || JS_ToFloat64(context, &milliseconds, next))
                return FAILED;
        }
        if (milliseconds < 0 && !pending_count)
            return IDLE;
        if (milliseconds != 0) {
            int64_t microseconds = milliseconds < 0 ? -1 : (int64_t)(milliseconds * 1000);
            int settled = settle_next(context, microseconds);
            if (settled < 0)
                return FAILED;
            if (settled > 0)
                continue;
        }
        JSValue done = JS_Call(context, hooks.run_timers, JS_UNDEFINED, 0, NULL);
        if (JS_IsException(done))
            return FAILED;
        JS_FreeValue(context, done);
    }
}
