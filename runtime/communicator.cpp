// SPDX-License-Identifier: Apache-2.0
//
// Ranks and their small messages, through MPI.
#include "runtime/communicator.h"

#include "runtime/mpi.h"

#include <cstdlib>
#include <cstring>

namespace trainc {
namespace {

bool started_by_launcher() {
  for (const char *variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "MPI_LOCALNRANKS"})
    if (getenv(variable))
      return true;
  return false;
}

} // namespace

communicator::communicator() {
  launched_ = started_by_launcher();
  if (!launched_)
    return;
  load_mpi();
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", /*overwrite=*/0);
  int provided;
  mpi_call(MPI_Init_thread)(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  mpi_call(MPI_Comm_rank)(MPI_COMM_WORLD, &rank_);
  mpi_call(MPI_Comm_size)(MPI_COMM_WORLD, &size_);
  MPI_Comm host;
  mpi_call(MPI_Comm_split_type)(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host);
  mpi_call(MPI_Comm_rank)(host, &rank_on_host_);
  mpi_call(MPI_Comm_size)(host, &ranks_on_host_);
  mpi_call(MPI_Comm_free)(&host);
}

communicator::~communicator() {
  if (launched_)
    mpi_call(MPI_Finalize)();
}

void communicator::abort(int code) {
  if (size_ == 1)
    return;
  fflush(stdout);
  fflush(stderr);
  mpi_call(MPI_Abort)(MPI_COMM_WORLD, code);
}

void communicator::together(const std::function<void()> &work) {
  int code = exit_success;
  std::string message;
  try {
    work();
  } catch (const failure &error) {
    code = error.code;
    message = error.message;
  } catch (const std::exception &error) {
    code = exit_internal;
    message = std::string("internal error: ") + error.what();
  }
  int mine = code == exit_success ? size_ : rank_, first = mine;
  if (size_ > 1) {
    mpi_call(MPI_Allreduce)(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first < size_)
      mpi_call(MPI_Bcast)(&code, 1, MPI_INT, first, MPI_COMM_WORLD);
  }
  if (first < size_)
    throw failure(static_cast<exit_code>(code), first == rank_ ? message : "", /*everywhere=*/true);
}

std::string communicator::broadcast(const std::string &text, int root) {
  if (size_ == 1)
    return text;
  auto length = static_cast<uint64_t>(text.size());
  mpi_call(MPI_Bcast)(&length, 1, MPI_UINT64_T, root, MPI_COMM_WORLD);
  std::string result = text;
  result.resize(length);
  mpi_call(MPI_Bcast)(result.data(), static_cast<int>(length), MPI_BYTE, root, MPI_COMM_WORLD);
  return result;
}

void communicator::barrier() {
  if (path_)
    path_->barrier();
  else if (size_ > 1)
    mpi_call(MPI_Barrier)(MPI_COMM_WORLD);
}

void communicator::gather(const void *mine, int64_t size, void *all) {
  if (path_)
    path_->gather(mine, size, all);
  else if (size_ > 1)
    mpi_call(MPI_Allgather)(mine, static_cast<int>(size), MPI_BYTE, all, static_cast<int>(size),
                            MPI_BYTE, MPI_COMM_WORLD);
  else
    memcpy(all, mine, static_cast<size_t>(size));
}

} // namespace trainc
