// SPDX-License-Identifier: Apache-2.0
//
// NCCL's functions over MPI. Calls between ncclGroupStart and ncclGroupEnd become one
// operation for each stream; it runs when the stream comes to it, on all ranks. Sums
// are taken in the order of ranks.
#include "errors.h"
#include "memory.h"
#include "nccl.h"
#include "operations.h"
#include "report.h"
#include "settings.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mpi.h>
#include <vector>

using namespace trainc::stand_in;

struct ncclComm {
  MPI_Comm ranks = MPI_COMM_NULL;
  int rank = 0, count = 1;
};

namespace {

enum class call_kind { send, receive, all_reduce, all_gather, broadcast };

struct call {
  call_kind kind;
  const char *from;
  char *to;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t operation;
  int peer;
  ncclComm *communicator;
};

struct grouped {
  cudaStream_t stream;
  std::vector<call> calls;
};

int group_depth = 0;
std::vector<grouped> group;
std::string last_error;

size_t size_of(ncclDataType_t type) {
  switch (type) {
  case ncclInt8:
  case ncclUint8:
    return 1;
  case ncclInt32:
  case ncclUint32:
  case ncclFloat32:
    return 4;
  case ncclInt64:
  case ncclUint64:
  case ncclFloat64:
    return 8;
  }
  return 0;
}

bool uses_mpi() {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

// ---- running

template <typename T> void reduce(const std::vector<char> &all, const call &c) {
  const auto *from = reinterpret_cast<const T *>(all.data());
  auto *to = reinterpret_cast<T *>(c.to);
  const int ranks = c.communicator->count;
  for (size_t i = 0; i < c.count; ++i) {
    T value = from[i];
    for (int rank = 1; rank < ranks; ++rank) {
      const T other = from[static_cast<size_t>(rank) * c.count + i];
      switch (c.operation) {
      case ncclSum:
      case ncclAvg:
        value += other;
        break;
      case ncclProd:
        value *= other;
        break;
      case ncclMax:
        value = std::max(value, other);
        break;
      case ncclMin:
        value = std::min(value, other);
        break;
      }
    }
    to[i] = c.operation == ncclAvg ? static_cast<T>(value / static_cast<T>(ranks)) : value;
  }
}

void gather(const call &c, char *to, size_t bytes) {
  if (c.communicator->count == 1) {
    std::memmove(to, c.from, bytes);
    return;
  }
  const char *from = c.from == to + static_cast<size_t>(c.communicator->rank) * bytes
                         ? static_cast<const char *>(MPI_IN_PLACE)
                         : c.from;
  MPI_Allgather(from, static_cast<int>(bytes), MPI_BYTE, to, static_cast<int>(bytes), MPI_BYTE,
                c.communicator->ranks);
}

void all_reduce(const call &c, size_t bytes) {
  std::vector<char> all(bytes * static_cast<size_t>(c.communicator->count));
  gather(c, all.data(), bytes);
  write_range(c.to, bytes, "the result of an all-reduce");
  switch (c.type) {
  case ncclInt8:
    return reduce<int8_t>(all, c);
  case ncclUint8:
    return reduce<uint8_t>(all, c);
  case ncclInt32:
    return reduce<int32_t>(all, c);
  case ncclUint32:
    return reduce<uint32_t>(all, c);
  case ncclInt64:
    return reduce<int64_t>(all, c);
  case ncclUint64:
    return reduce<uint64_t>(all, c);
  case ncclFloat32:
    return reduce<float>(all, c);
  case ncclFloat64:
    return reduce<double>(all, c);
  }
}

void run_collective(const call &c, size_t bytes) {
  const auto ranks = static_cast<size_t>(c.communicator->count);
  switch (c.kind) {
  case call_kind::all_reduce:
    read_range(c.from, bytes, "the source of an all-reduce");
    return all_reduce(c, bytes);
  case call_kind::all_gather:
    read_range(c.from, bytes, "the source of an all-gather");
    write_range(c.to, bytes * ranks, "the result of an all-gather");
    return gather(c, c.to, bytes);
  case call_kind::broadcast:
    if (c.communicator->rank == c.peer) {
      read_range(c.from, bytes, "the source of a broadcast");
      if (c.from != c.to) {
        write_range(c.to, bytes, "the result of a broadcast");
        std::memmove(c.to, c.from, bytes);
      }
    } else
      write_range(c.to, bytes, "the result of a broadcast");
    if (ranks > 1)
      MPI_Bcast(c.to, static_cast<int>(bytes), MPI_BYTE, c.peer, c.communicator->ranks);
    return;
  default:
    return;
  }
}

// A rank may send to itself, which MPI matches as well.
void run_messages(const std::vector<call> &calls) {
  std::vector<MPI_Request> requests;
  constexpr int tag = 1;
  for (const call &c : calls) {
    const size_t bytes = c.count * size_of(c.type);
    if (c.kind == call_kind::send) {
      read_range(c.from, bytes, "the source of a message");
      MPI_Isend(c.from, static_cast<int>(bytes), MPI_BYTE, c.peer, tag, c.communicator->ranks,
                &requests.emplace_back());
    } else if (c.kind == call_kind::receive) {
      write_range(c.to, bytes, "the destination of a message");
      MPI_Irecv(c.to, static_cast<int>(bytes), MPI_BYTE, c.peer, tag, c.communicator->ranks,
                &requests.emplace_back());
    }
  }
  if (!requests.empty())
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

const char *name_of(const std::vector<call> &calls) {
  switch (calls.front().kind) {
  case call_kind::all_reduce:
    return "all-reduce";
  case call_kind::all_gather:
    return "all-gather";
  case call_kind::broadcast:
    return "broadcast";
  default:
    return "exchange of messages";
  }
}

ncclResult_t queue_group() {
  std::vector<grouped> all = std::move(group);
  group.clear();
  for (grouped &one : all) {
    const operation_name name = {name_of(one.calls)};
    const cudaError_t error = queue(one.stream, name, [calls = std::move(one.calls)] {
      for (const call &c : calls)
        run_collective(c, c.count * size_of(c.type));
      run_messages(calls);
    });
    if (error != cudaSuccess)
      return ncclUnhandledCudaError;
  }
  return ncclSuccess;
}

ncclResult_t add(const call &c, cudaStream_t stream) {
  if (c.communicator == nullptr || c.from == nullptr || size_of(c.type) == 0) {
    last_error = "no communicator, buffer or data type";
    return ncclInvalidArgument;
  }
  if (c.peer < 0 || c.peer >= c.communicator->count) {
    last_error = "rank " + std::to_string(c.peer) + " of " + std::to_string(c.communicator->count);
    return ncclInvalidArgument;
  }
  const auto found = std::find_if(group.begin(), group.end(),
                                  [&](const grouped &one) { return one.stream == stream; });
  if (found != group.end())
    found->calls.push_back(c);
  else
    group.push_back({stream, {c}});
  return group_depth > 0 ? ncclSuccess : queue_group();
}

} // namespace

extern "C" {

ncclResult_t ncclGetVersion(int *version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static int ids = 0;
  *id = {};
  int rank = 0;
  if (uses_mpi())
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::snprintf(id->internal, sizeof id->internal, "stand-in %d %d", rank, ids++);
  return ncclSuccess;
}

// All ranks of MPI or this one alone: trainers need no other sets.
ncclResult_t ncclCommInitRank(ncclComm_t *communicator, int ranks, ncclUniqueId id, int rank) {
  if (options().nccl_fails) {
    last_error = "asked to fail by TRAINC_STAND_IN";
    return ncclSystemError;
  }
  if (device_problem() != cudaSuccess || forbidden_in_capture())
    return ncclUnhandledCudaError;
  auto created = std::make_unique<ncclComm>();
  created->rank = rank;
  created->count = ranks;
  int world = 1;
  if (uses_mpi())
    MPI_Comm_size(MPI_COMM_WORLD, &world);
  if (rank < 0 || rank >= ranks || (ranks != 1 && ranks != world)) {
    last_error = "the stand-in needs one rank or all " + std::to_string(world) + " of MPI";
    return ncclInvalidArgument;
  }
  if (uses_mpi())
    MPI_Comm_split(ranks == 1 ? MPI_COMM_SELF : MPI_COMM_WORLD, 0, rank, &created->ranks);
  std::vector<ncclUniqueId> ids(static_cast<size_t>(ranks), id);
  if (ranks > 1)
    MPI_Allgather(&id, sizeof id, MPI_BYTE, ids.data(), sizeof id, MPI_BYTE, created->ranks);
  for (const ncclUniqueId &other : ids)
    if (std::memcmp(&other, &id, sizeof id) != 0) {
      last_error = "ranks have different ids";
      return ncclInvalidUsage;
    }
  *communicator = created.release();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  if (communicator == nullptr)
    return ncclInvalidArgument;
  if (communicator->ranks != MPI_COMM_NULL && uses_mpi())
    MPI_Comm_free(&communicator->ranks);
  delete communicator;
  return ncclSuccess;
}

// Other ranks may be gone: nothing is asked of them.
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  delete communicator;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *error) {
  *error = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(ncclComm_t communicator, int *count) {
  *count = communicator->count;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(ncclComm_t communicator, int *rank) {
  *rank = communicator->rank;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSuccess:
    return "no error";
  case ncclUnhandledCudaError:
    return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
  case ncclSystemError:
    return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
  case ncclInternalError:
    return "internal error - please report this issue to the NCCL developers";
  case ncclInvalidArgument:
    return "invalid argument (run with NCCL_DEBUG=WARN for details)";
  case ncclInvalidUsage:
    return "invalid usage (run with NCCL_DEBUG=WARN for details)";
  case ncclRemoteError:
    return "remote process exited or there was a network error";
  case ncclInProgress:
    return "NCCL operation in progress";
  }
  return "unknown result code";
}
const char *ncclGetLastError(ncclComm_t) { return last_error.c_str(); }

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (group_depth == 0)
    return ncclInvalidUsage;
  return --group_depth > 0 ? ncclSuccess : queue_group();
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  return add({call_kind::send, static_cast<const char *>(from), nullptr, count, type, ncclSum, peer,
              communicator},
             stream);
}
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  char *place = static_cast<char *>(to);
  return add({call_kind::receive, place, place, count, type, ncclSum, peer, communicator}, stream);
}
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
  return add({call_kind::all_reduce, static_cast<const char *>(from), static_cast<char *>(to),
              count, type, operation, 0, communicator},
             stream);
}
ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream) {
  return add({call_kind::all_gather, static_cast<const char *>(from), static_cast<char *>(to),
              count, type, ncclSum, 0, communicator},
             stream);
}
ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  // Only the root has a source.
  const void *source = from == nullptr ? to : from;
  return add({call_kind::broadcast, static_cast<const char *>(source), static_cast<char *>(to),
              count, type, ncclSum, root, communicator},
             stream);
}
}
