/* Stands before the system's write: for journals (*.rnj) it fails with EIO, or writes half, now and then. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_journal(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 4) return 0;
    path[length] = 0;
    return strcmp(path + length - 4, ".rnj") == 0;
}

ssize_t write(int fd, const void *data, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    static long calls;
    if (!real) real = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    const char *how = getenv("FAILING_WRITE");
    if (how && is_journal(fd)) {
        calls++;
        if (!strcmp(how, "short") && count > 1) return real(fd, data, count / 2);
        if (!strcmp(how, "eio") && calls > 4 && calls % 3 == 0) { errno = EIO; return -1; }
        if (!strcmp(how, "dead") && calls > 4) { errno = EIO; return -1; }
    }
    return real(fd, data, count);
}

int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    if (getenv("FAILING_SYNC")) { errno = EIO; return -1; }
    return real(fd);
}
