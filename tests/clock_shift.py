"""A shared library that shifts the system's wall clock for one program and its children: by LD_PRELOAD, beneath Python.

Monotonic clocks stay as they are. Needs a C compiler.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static double shift(void) { const char *said = getenv("CLOCK_SHIFT_S"); return said ? atof(said) : 0; }

static void move(struct timespec *t) {
  double s = shift();
  long whole = (long)s, nanos = (long)((s - whole) * 1e9);
  t->tv_sec += whole;
  t->tv_nsec += nanos;
  if (t->tv_nsec >= 1000000000) { t->tv_nsec -= 1000000000; t->tv_sec++; }
  if (t->tv_nsec < 0) { t->tv_nsec += 1000000000; t->tv_sec--; }
}

int clock_gettime(clockid_t id, struct timespec *t) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int got = real(id, t);
  if (!got && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) move(t);
  return got;
}

int gettimeofday(struct timeval *t, void *zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  t->tv_sec = now.tv_sec;
  t->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
"""


def built(folder: Path) -> Path:
    """Compile the library into `folder`; skips the test where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler, so nothing can shift the clock beneath Python")
    source, library = folder / "shift.c", folder / "shift.so"
    source.write_text(SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
    return library
