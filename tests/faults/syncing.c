/* Stands before what changes files, and writes down in which order: one line an act, to the file named by SYNCING. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void tell(const char *act, const char *path) {
    const char *name = getenv("SYNCING");
    char line[8300], whole[4200];
    if (!name || !path) return;
    if (path[0] != '/') {
        if (!getcwd(whole, sizeof whole - 1)) return;
        snprintf(line, sizeof line, "%s %s/%s\n", act, whole, path);
    } else snprintf(line, sizeof line, "%s %s\n", act, path);
    int fd = syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0) return;
    syscall(SYS_write, fd, line, strlen(line));
    syscall(SYS_close, fd);
}

static void tell_fd(const char *act, int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return;
    path[length] = 0;
    if (path[0] == '/') tell(act, path);
}

#define REAL(name, type) static __typeof__(type) *real; if (!real) real = dlsym(RTLD_NEXT, name)

ssize_t write(int fd, const void *data, size_t count) {
    REAL("write", ssize_t(int, const void *, size_t));
    ssize_t done = real(fd, data, count);
    if (fd > 2 && done > 0) tell_fd("write", fd);
    return done;
}

ssize_t pwrite64(int fd, const void *data, size_t count, off64_t at) {
    REAL("pwrite64", ssize_t(int, const void *, size_t, off64_t));
    ssize_t done = real(fd, data, count, at);
    if (done > 0) tell_fd("write", fd);
    return done;
}

int fsync(int fd) { REAL("fsync", int(int)); int done = real(fd); if (!done) tell_fd("sync", fd); return done; }

int fdatasync(int fd) { REAL("fdatasync", int(int)); int done = real(fd); if (!done) tell_fd("sync", fd); return done; }

int unlink(const char *path) { REAL("unlink", int(const char *)); int done = real(path); if (!done) tell("unlink", path); return done; }

int rename(const char *from, const char *to) {
    REAL("rename", int(const char *, const char *));
    int done = real(from, to);
    if (!done) { tell("from", from); tell("to", to); }
    return done;
}

int mkdir(const char *path, mode_t mode) {
    REAL("mkdir", int(const char *, mode_t));
    int done = real(path, mode);
    if (!done) tell("make", path);
    return done;
}

#define OPENING(name) \
    int name(const char *path, int flags, ...) { \
        REAL(#name, int(const char *, int, ...)); \
        mode_t mode = 0; \
        if (flags & O_CREAT) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); } \
        int is_new = (flags & O_CREAT) && access(path, F_OK) != 0; \
        int fd = real(path, flags, mode); \
        if (fd >= 0 && is_new) tell("make", path); \
        return fd; \
    }

OPENING(open)
OPENING(open64)
