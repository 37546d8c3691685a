// SPDX-License-Identifier: Apache-2.0
//
// Ranks of one host: each keeps its gradients arena in an anonymous memory file
// that the others map, and owns one part of the elements. It sums that part over
// all ranks and writes the total into every arena in one pass, so a reduction
// reads and writes each byte once and copies nothing. Memory files are not
// limited by the size of /dev/shm, and the barrier sleeps in the kernel after a
// short spin, so more ranks than cores do no harm.
//
// Ranks of several hosts exchange pieces of their parts as messages, add them in
// the same rank order and send the totals back.
#include "runtime/communicator.h"

#include "runtime/arena.h"
#include "runtime/cpu/flat_sum.h"
#include "runtime/data_types.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <immintrin.h>
#include <linux/futex.h>
#define OMPI_SKIP_MPICXX 1 // the C interface alone; the C++ one warns
#include <mpi.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace trainc {
namespace {

constexpr int64_t page_bytes = 4096;
constexpr int64_t part_alignment = 1024; // elements: parts begin at whole pages of f32
constexpr int64_t message_bytes = 1 << 20;
constexpr int spins_before_sleep = 2000;

bool started_by_launcher() {
  for (const char *variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "MPI_LOCALNRANKS"})
    if (getenv(variable))
      return true;
  return false;
}

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// First page of each rank's memory file; the barrier of rank 0's is used.
struct control_page {
  uint64_t magic;
  std::atomic<uint32_t> arrived;
  alignas(64) std::atomic<uint32_t> generation;
};
static_assert(sizeof(control_page) <= page_bytes);

} // namespace

struct communicator::transport {
  virtual ~transport() = default;
  virtual void barrier() = 0;
  virtual void gather(const void *mine, int64_t size, void *all) = 0;
  virtual void sum_gradients(communicator &own, char *accumulator, bool first, bool last) = 0;
};

struct communicator::shared_transport final : transport {
  int rank, size;
  int64_t file_bytes, gradients_offset;
  std::vector<char *> files;     // mapping of each rank's memory file
  std::vector<char *> gradients; // inside them
  pid_t parent = getppid();

  ~shared_transport() override {
    for (char *file : files)
      if (file)
        munmap(file, static_cast<size_t>(file_bytes));
  }

  control_page &control() { return *reinterpret_cast<control_page *>(files[0]); }

  void barrier() override {
    control_page &page = control();
    uint32_t generation = page.generation.load();
    if (page.arrived.fetch_add(1) + 1 == static_cast<uint32_t>(size)) {
      page.arrived.store(0);
      page.generation.fetch_add(1);
      syscall(SYS_futex, &page.generation, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
      return;
    }
    for (int spin = 0; spin < spins_before_sleep; ++spin) {
      if (page.generation.load(std::memory_order_acquire) != generation)
        return;
      _mm_pause();
    }
    while (page.generation.load() == generation) {
      timespec limit = {1, 0};
      syscall(SYS_futex, &page.generation, FUTEX_WAIT, generation, &limit, nullptr, 0);
      if (getppid() != parent) // the launcher is gone: nobody will ever wake us
        _exit(exit_internal);
    }
  }

  void gather(const void *mine, int64_t count, void *all) override {
    memcpy(files[static_cast<size_t>(rank)] + page_bytes, mine, static_cast<size_t>(count));
    barrier();
    for (int other = 0; other < size; ++other)
      memcpy(static_cast<char *>(all) + other * count,
             files[static_cast<size_t>(other)] + page_bytes, static_cast<size_t>(count));
    barrier();
  }

  void sum_gradients(communicator &own, char *accumulator, bool first, bool last) override {
    barrier();
    char *const *targets = last ? gradients.data() : &accumulator;
    sum_in_order(own.type_, first ? nullptr : accumulator, gradients.data(), size, targets,
                 last ? size : 1, own.own_begin_, own.own_end_);
    barrier();
  }
};

struct communicator::message_transport final : transport {
  int rank, size;
  int64_t element_bytes;
  std::vector<int64_t> part_begin; // elements, size + 1 of them
  std::vector<char> pieces;        // one from each rank
  std::vector<char *> sources;
  std::vector<MPI_Request> requests;

  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

  void gather(const void *mine, int64_t count, void *all) override {
    MPI_Allgather(mine, static_cast<int>(count), MPI_BYTE, all, static_cast<int>(count), MPI_BYTE,
                  MPI_COMM_WORLD);
  }

  int64_t piece_length(int part, int64_t done) const {
    int64_t left =
        part_begin[static_cast<size_t>(part) + 1] - part_begin[static_cast<size_t>(part)] - done;
    return std::clamp<int64_t>(left, 0, message_bytes / element_bytes);
  }

  // Round `done`: sends to each rank the piece of its part from our arena, and
  // receives from each rank the piece of our part.
  void scatter(char *gradients, int64_t done) {
    int used = 0;
    int64_t mine = piece_length(rank, done);
    for (int other = 0; other < size; ++other)
      if (other != rank && mine > 0)
        MPI_Irecv(pieces.data() + other * message_bytes, static_cast<int>(mine * element_bytes),
                  MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[static_cast<size_t>(used++)]);
    for (int other = 0; other < size; ++other)
      if (int64_t length = piece_length(other, done); other != rank && length > 0)
        MPI_Isend(gradients + (part_begin[static_cast<size_t>(other)] + done) * element_bytes,
                  static_cast<int>(length * element_bytes), MPI_BYTE, other, 0, MPI_COMM_WORLD,
                  &requests[static_cast<size_t>(used++)]);
    MPI_Waitall(used, requests.data(), MPI_STATUSES_IGNORE);
  }

  void publish(char *gradients, int64_t done) {
    int used = 0;
    auto piece = [&](int part) {
      return gradients + (part_begin[static_cast<size_t>(part)] + done) * element_bytes;
    };
    for (int other = 0; other < size; ++other)
      if (int64_t length = piece_length(other, done); other != rank && length > 0)
        MPI_Irecv(piece(other), static_cast<int>(length * element_bytes), MPI_BYTE, other, 1,
                  MPI_COMM_WORLD, &requests[static_cast<size_t>(used++)]);
    int64_t mine = piece_length(rank, done);
    for (int other = 0; other < size; ++other)
      if (other != rank && mine > 0)
        MPI_Isend(piece(rank), static_cast<int>(mine * element_bytes), MPI_BYTE, other, 1,
                  MPI_COMM_WORLD, &requests[static_cast<size_t>(used++)]);
    MPI_Waitall(used, requests.data(), MPI_STATUSES_IGNORE);
  }

  void sum_gradients(communicator &own, char *accumulator, bool first, bool last) override {
    int64_t longest = 0;
    for (int part = 0; part < size; ++part)
      longest = std::max(longest, part_begin[static_cast<size_t>(part) + 1] -
                                      part_begin[static_cast<size_t>(part)]);
    char *target = last ? own.gradients_ : accumulator;
    for (int64_t done = 0; done < longest; done += message_bytes / element_bytes) {
      scatter(own.gradients_, done);
      int64_t length = piece_length(rank, done), begin = own.own_begin_ + done;
      for (int other = 0; other < size; ++other)
        // Addressed so that element `begin` of every source is its first received one.
        sources[static_cast<size_t>(other)] =
            other == rank ? own.gradients_
                          : pieces.data() + other * message_bytes - begin * element_bytes;
      sum_in_order(own.type_, first ? nullptr : accumulator, sources.data(), size, &target, 1,
                   begin, begin + length);
      if (last)
        publish(own.gradients_, done);
    }
  }
};

communicator::communicator() {
  launched_ = started_by_launcher();
  if (!launched_)
    return;
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", /*overwrite=*/0);
  int provided;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  MPI_Comm host;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host);
  MPI_Comm_size(host, &ranks_on_host_);
  MPI_Comm_free(&host);
}

communicator::~communicator() {
  transport_.reset();
  if (launched_)
    MPI_Finalize();
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
    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first < size_)
      MPI_Bcast(&code, 1, MPI_INT, first, MPI_COMM_WORLD);
  }
  if (first < size_)
    throw failure(static_cast<exit_code>(code), first == rank_ ? message : "");
}

std::string communicator::broadcast(const std::string &text, int root) {
  if (size_ == 1)
    return text;
  auto length = static_cast<uint64_t>(text.size());
  MPI_Bcast(&length, 1, MPI_UINT64_T, root, MPI_COMM_WORLD);
  std::string result = text;
  result.resize(length);
  MPI_Bcast(result.data(), static_cast<int>(length), MPI_BYTE, root, MPI_COMM_WORLD);
  return result;
}

namespace {

// A memory file of this process, and how others open it.
struct memory_file_address {
  int64_t process;
  int64_t descriptor;
  uint64_t magic;
};

char *map_file(int descriptor, int64_t bytes) {
  void *base =
      mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (base == MAP_FAILED)
    return nullptr;
  madvise(base, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return static_cast<char *>(base);
}

// Maps every rank's memory file of `bytes`; an empty result means: not possible
// here (ranks in different containers, say).
std::vector<char *> exchange_files(int rank, int size, int64_t bytes) {
  int descriptor = memfd_create("trainc-gradients", MFD_CLOEXEC);
  char *mine = nullptr;
  if (descriptor >= 0 && ftruncate(descriptor, bytes) == 0)
    mine = map_file(descriptor, bytes);
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  memory_file_address address = {getpid(), descriptor,
                                 static_cast<uint64_t>(now.tv_nsec) * 1000003 +
                                     static_cast<uint64_t>(getpid())};
  if (mine) {
    touch(mine, bytes);
    reinterpret_cast<control_page *>(mine)->magic = address.magic;
  }
  std::vector<memory_file_address> addresses(static_cast<size_t>(size));
  MPI_Allgather(&address, sizeof address, MPI_BYTE, addresses.data(), sizeof address, MPI_BYTE,
                MPI_COMM_WORLD);
  std::vector<char *> files(static_cast<size_t>(size));
  int complete = mine != nullptr;
  for (int other = 0; other < size; ++other) {
    const memory_file_address &theirs = addresses[static_cast<size_t>(other)];
    char *&file = files[static_cast<size_t>(other)];
    if (other == rank) {
      file = mine;
      continue;
    }
    std::string path = format_text("/proc/%lld/fd/%lld", static_cast<long long>(theirs.process),
                                   static_cast<long long>(theirs.descriptor));
    int opened = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (opened >= 0) {
      file = lseek(opened, 0, SEEK_END) == bytes ? map_file(opened, bytes) : nullptr;
      close(opened);
    }
    if (!file || reinterpret_cast<control_page *>(file)->magic != theirs.magic)
      complete = 0;
  }
  MPI_Allreduce(MPI_IN_PLACE, &complete, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (descriptor >= 0)
    close(descriptor);
  if (complete)
    return files;
  for (char *file : files)
    if (file)
      munmap(file, static_cast<size_t>(bytes));
  return {};
}

} // namespace

char *communicator::allocate_gradients(arena_set &arenas, data_type type, int64_t gradient_bytes,
                                       int64_t reduced_bytes, int64_t gather_bytes,
                                       communication_kind kind) {
  type_ = type;
  int64_t elements = reduced_bytes / bytes_of(type);
  auto part = [&](int index) {
    return index == size_ ? elements
                          : std::min(elements, round_up(elements * index / size_, part_alignment));
  };
  own_begin_ = part(rank_);
  own_end_ = part(rank_ + 1);
  if (size_ == 1)
    return gradients_ = arenas.allocate(gradient_bytes);

  if (kind != communication_kind::messages && ranks_on_host_ == size_) {
    int64_t offset = page_bytes + round_up(gather_bytes, page_bytes);
    int64_t bytes = offset + round_up(std::max<int64_t>(gradient_bytes, 1), page_bytes);
    if (auto files = exchange_files(rank_, size_, bytes); !files.empty()) {
      auto shared = std::make_unique<shared_transport>();
      shared->rank = rank_;
      shared->size = size_;
      shared->file_bytes = bytes;
      shared->gradients_offset = offset;
      shared->files = files;
      for (char *file : files)
        shared->gradients.push_back(file + offset);
      gradients_ = shared->gradients[static_cast<size_t>(rank_)];
      transport_ = std::move(shared);
      transport_is_shared_ = true;
      return gradients_;
    }
  }
  if (kind == communication_kind::shared_memory)
    throw failure(exit_machine,
                  "ranks do not share memory: they run on several hosts or in several "
                  "containers\n  try: --communication messages");
  auto messages = std::make_unique<message_transport>();
  messages->rank = rank_;
  messages->size = size_;
  messages->element_bytes = bytes_of(type);
  for (int index = 0; index <= size_; ++index)
    messages->part_begin.push_back(part(index));
  messages->pieces.resize(static_cast<size_t>(size_) * message_bytes);
  messages->sources.resize(static_cast<size_t>(size_));
  messages->requests.resize(2 * static_cast<size_t>(size_));
  transport_ = std::move(messages);
  return gradients_ = arenas.allocate(gradient_bytes);
}

void communicator::barrier() {
  if (transport_)
    transport_->barrier();
  else if (size_ > 1)
    MPI_Barrier(MPI_COMM_WORLD);
}

void communicator::gather(const void *mine, int64_t size, void *all) {
  if (transport_)
    transport_->gather(mine, size, all);
  else if (size_ > 1)
    MPI_Allgather(mine, static_cast<int>(size), MPI_BYTE, all, static_cast<int>(size), MPI_BYTE,
                  MPI_COMM_WORLD);
  else
    memcpy(all, mine, static_cast<size_t>(size));
}

void communicator::sum_gradients(char *accumulator, bool first, bool last) {
  if (transport_) {
    transport_->sum_gradients(*this, accumulator, first, last);
    return;
  }
  if (first && last)
    return;
  char *target = last ? gradients_ : accumulator;
  sum_in_order(type_, first ? nullptr : accumulator, &gradients_, 1, &target, 1, own_begin_,
               own_end_);
}

} // namespace trainc
