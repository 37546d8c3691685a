// SPDX-License-Identifier: Apache-2.0
//
// Faults of a disk, and a shortage of threads, loaded in front of the C library (LD_PRELOAD):
//   FAULTS_SLOW_SYNC=SECONDS  fsync takes so long
//   FAULTS_FULL=TEXT          the disk is full for files whose path has this text; half of what is
//                             written first gets through
//   FAULTS_THREAD=N           the N-th thread that C++ code starts is refused
//   FAULTS_WHILE=FILE         only while this file exists
//   FAULTS_RANK=N             only in this rank
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
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

int fsync(int file) {
  const char *seconds = setting("FAULTS_SLOW_SYNC");
  if (seconds)
    sleep((unsigned)atoi(seconds));
  return (int)syscall(SYS_fsync, file);
}

ssize_t write(int file, const void *data, size_t size) {
  static int full;
  const char *part = setting("FAULTS_FULL");
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = part ? readlink(link, path, sizeof path - 1) : -1;
  path[length < 0 ? 0 : length] = 0;
  if (!part || !strstr(path, part))
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
