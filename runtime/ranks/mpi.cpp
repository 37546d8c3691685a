// SPDX-License-Identifier: Apache-2.0
#include "runtime/ranks/mpi.h"

#include "runtime/failure.h"

#include <dlfcn.h>

namespace trainc {
namespace {

// By the names under which programs linked with it would find it.
constexpr const char *library_names[] = {
#if defined(OPEN_MPI)
    "libmpi.so.40", // of Open MPI 3 to 5
#else
    "libmpi.so.12", // MPICH and those that share its binary interface
    "libmpich.so.12",
#endif
};

void *library = nullptr;

} // namespace

const char *mpi_name() {
#if defined(OPEN_MPI)
  return "Open MPI";
#else
  return "MPICH";
#endif
}

void load_mpi() {
  std::string why;
  for (const char *name : library_names) {
    // Its plug-ins expect its names among those of the program.
    library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (library)
      return;
    const char *error = dlerror();
    why += std::string(why.empty() ? "" : "; ") + (error ? error : name);
  }
  throw failure(exit_machine, "a launcher started this rank, but MPI cannot be loaded: " + why +
                                  "\n  try: installing " + mpi_name() +
                                  ", of which the launcher must be; without a launcher one rank "
                                  "runs without MPI");
}

void *mpi_symbol(const char *name) {
  // Among all names: where a program is linked with MPI too, its objects may lie in the program.
  void *address = library ? dlsym(RTLD_DEFAULT, name) : nullptr;
  if (!address)
    throw failure(exit_machine, std::string("MPI's library has no '") + name + "'");
  return address;
}

} // namespace trainc
