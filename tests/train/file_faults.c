// SPDX-License-Identifier: Apache-2.0
//
// Faults of a disk, and a shortage of threads, loaded in front of the C library (LD_PRELOAD):
//   FAULTS_SLOW_SYNC=SECONDS  fsync takes so long
//   FAULTS_SLOW=SECONDS       so do each read by position, write and fsync
//   FAULTS_OF=TEXT            both only of files whose path has this text
//   FAULTS_FULL=TEXT          the disk is full for files whose path has this text; half of what is
//                             written first gets through
//   FAULTS_KILL=TEXT          kills the process in the midst of its first write to such a file
//   FAULTS_THREAD=N           the N-th thread that C++ code starts is refused
//   FAULTS_WHILE=FILE         only while this file exists
//   FAULTS_RANK=N             only in this rank
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *setting(const char *name) {
  const char *file = getenv("FAULTS_WHILE"), *rank = getenv("FAULTS_RANK");
  const char *own = getenv("OMPI_COMM_WORLD_RANK");
  if ((file && access(file, F_OK) != 0) || (rank && (!own || strcmp(rank, own) != 0)))
    return NULL;
  return getenv(name);
}

// Whether the path of the open file has this text, if there is one.
static int has_in_path(int file, const char *text) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = text ? readlink(link, path, sizeof path - 1) : -1;
  path[length < 0 ? 0 : length] = 0;
  return text && strstr(path, text) != NULL;
}

static void take_time(int file, const char *fault) {
  const char *seconds = setting(fault), *of = setting("FAULTS_OF");
  if (seconds && (!of || has_in_path(file, of)))
    usleep((unsigned)(strtod(seconds, NULL) * 1e6));
}

ssize_t pread(int file, void *data, size_t size, off_t offset) {
  take_time(file, "FAULTS_SLOW");
  return syscall(SYS_pread64, file, data, size, offset);
}

int fsync(int file) {
  take_time(file, "FAULTS_SLOW");
  take_time(file, "FAULTS_SLOW_SYNC");
  return (int)syscall(SYS_fsync, file);
}

ssize_t write(int file, const void *data, size_t size) {
  static int full;
  take_time(file, "FAULTS_SLOW");
  if (has_in_path(file, setting("FAULTS_KILL"))) {
    syscall(SYS_write, file, data, size / 2);
    kill(getpid(), SIGKILL);
  }
  if (!has_in_path(file, setting("FAULTS_FULL")))
    return syscall(SYS_write, file, data, size);
  if (full || size < 2) {
    errno = ENOSPC;
    return -1;
  }
  full = 1;
  return syscall(SYS_write, file, data, size / 2);
}

typedef int thread_start(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

// Those of MPI and OpenMP begin elsewhere than in C++'s library.
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*begin)(void *), void *what) {
  static int started;
  thread_start *start = (thread_start *)dlsym(RTLD_NEXT, "pthread_create");
  const char *number = setting("FAULTS_THREAD");
  Dl_info of;
  if (number && dladdr((void *)begin, &of) && strstr(of.dli_fname, "libstdc++") &&
      ++started == atoi(number))
    return EAGAIN;
  return start(thread, how, begin, what);
}
