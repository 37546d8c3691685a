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
#include <cstdio>
#include <cstring>
#include <list>
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

// What is on its way, copied: a message holds up no other stream, as on a device, where it would
// wait on its own.
struct sent {
  std::vector<char> bytes;
  MPI_Request request = MPI_REQUEST_NULL;
};
std::list<sent> on_their_way;

void forget_what_arrived() {
  for (auto each = on_their_way.begin(); each != on_their_way.end();) {
    int done = 0;
    MPI_Test(&each->request, &done, MPI_STATUS_IGNORE);
    each = done != 0 ? on_their_way.erase(each) : std::next(each);
  }
}

// A rank may send to itself, which MPI matches as well.
void run_messages(const std::vector<call> &calls) {
  std::vector<MPI_Request> requests;
  constexpr int tag = 1;
  if (!on_their_way.empty())
    forget_what_arrived();
  for (const call &c : calls) {
    const size_t bytes = c.count * size_of(c.type);
    if (c.kind == call_kind::send) {
      read_range(c.from, bytes, "the source of a message");
      sent &message = on_their_way.emplace_back();
      message.bytes.assign(c.from, c.from + bytes);
      MPI_Isend(message.bytes.data(), static_cast<int>(bytes), MPI_BYTE, c.peer, tag,
                c.communicator->ranks, &message.request);
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
    const bool only_sends = std::all_of(one.calls.begin(), one.calls.end(),
                                        [](const call &c) { return c.kind == call_kind::send; });
    const cudaError_t error = queue(one.stream, name, [calls = std::move(one.calls)] {
      for (const call &c : calls)
        run_collective(c, c.count * size_of(c.type));
      run_messages(calls);
    });
    if (error != cudaSuccess)
      return ncclUnhandledCudaError;
    if (only_sends) // late ones too: another rank may wait for it before the host here waits at all
      run_stream(one.stream);
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

MPI_Comm alone() {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &made);
  return made;
}

// Members tell the maker of the id which they are, and hear which the others are.
MPI_Comm meet(int ranks, int rank, int maker, int number) {
  int self = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &self);
  constexpr int first_tag = 1000, tags = 30000; // which MPI has at least
  const int tag = first_tag + 2 * (number % (tags / 2));
  std::vector<int> members(static_cast<size_t>(ranks));
  const int own[2] = {self, rank};
  MPI_Request told;
  MPI_Isend(own, 2, MPI_INT, maker, tag, MPI_COMM_WORLD, &told);
  if (self == maker) {
    for (int i = 0; i < ranks; ++i) {
      int other[2];
      MPI_Recv(other, 2, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      members[static_cast<size_t>(other[1])] = other[0];
    }
    for (const int member : members)
      if (member != self)
        MPI_Send(members.data(), ranks, MPI_INT, member, tag + 1, MPI_COMM_WORLD);
  } else
    MPI_Recv(members.data(), ranks, MPI_INT, maker, tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&told, MPI_STATUS_IGNORE);
  MPI_Group all, group;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, ranks, members.data(), &group);
  MPI_Comm_create_group(MPI_COMM_WORLD, group, tag, &made);
  MPI_Group_free(&group);
  MPI_Group_free(&all);
  return made;
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
  int world = 1, maker = 0, number = 0;
  if (uses_mpi())
    MPI_Comm_size(MPI_COMM_WORLD, &world);
  if (rank < 0 || rank >= ranks || ranks > world) {
    last_error = "rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
                 ", and MPI has " + std::to_string(world);
    return ncclInvalidArgument;
  }
  if (std::sscanf(id.internal, "stand-in %d %d", &maker, &number) != 2 || maker >= world) {
    last_error = "the id is none of ncclGetUniqueId";
    return ncclInvalidArgument;
  }
  if (uses_mpi())
    created->ranks = ranks == 1 ? alone() : meet(ranks, rank, maker, number);
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
