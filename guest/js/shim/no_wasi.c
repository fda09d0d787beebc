/* No WASI: own definitions of the C library's WASI imports. The clock is the host's, text on file descriptors 1 and 2 is
 * output, everything else is refused. */
enum { WASI_BADF = 8 };
#define WASI(name) __imported_wasi_snapshot_preview1_##name

int32_t WASI(clock_time_get)(int32_t clock, int64_t precision, int32_t out)
{
    *(uint64_t *)(uintptr_t)out = host_now(clock);
    return 0;
}

int32_t WASI(clock_res_get)(int32_t clock, int32_t out)
{
    *(uint64_t *)(uintptr_t)out = 1000;
    return 0;
}

int32_t WASI(random_get)(int32_t buffer, int32_t length)
{
    random_bytes((uint8_t *)(uintptr_t)buffer, length);
    return 0;
}

int32_t WASI(fd_write)(int32_t fd, int32_t vectors, int32_t count, int32_t out)
{
    uint32_t *vector = (uint32_t *)(uintptr_t)vectors, total = 0;
    for (int32_t i = 0; i < count; i++) {
        host_log(fd, (char *)(uintptr_t)vector[2 * i], vector[2 * i + 1]);
        total += vector[2 * i + 1];
    }
    *(uint32_t *)(uintptr_t)out = total;
    return 0;
}

int32_t WASI(environ_get)(int32_t a, int32_t b) { return 0; }

int32_t WASI(environ_sizes_get)(int32_t count, int32_t bytes)
{
    *(uint32_t *)(uintptr_t)count = 0;
    *(uint32_t *)(uintptr_t)bytes = 0;
    return 0;
}

int32_t WASI(fd_close)(int32_t fd) { return WASI_BADF; }
int32_t WASI(fd_seek)(int32_t fd, int64_t offset, int32_t whence, int32_t out) { return WASI_BADF; }
int32_t WASI(fd_read)(int32_t fd, int32_t a, int32_t b, int32_t c) { return WASI_BADF; }
int32_t WASI(fd_fdstat_get)(int32_t fd, int32_t out) { return WASI_BADF; }
int32_t WASI(fd_prestat_get)(int32_t fd, int32_t out) { return WASI_BADF; }
int32_t WASI(fd_prestat_dir_name)(int32_t fd, int32_t a, int32_t b) { return WASI_BADF; }
_Noreturn void WASI(proc_exit)(int32_t code) { __builtin_trap(); }

/* parts of the compiler's own C library use the bare name */
int32_t bare_fd_close(int32_t fd) __asm__("fd_close|wasi_snapshot_preview1");
int32_t bare_fd_close(int32_t fd) { return WASI_BADF; }
