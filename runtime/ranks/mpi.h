// SPDX-License-Identifier: Apache-2.0
//
// MPI, whose library is loaded when a launcher has started this process and not before: a rank that
// is alone runs where no MPI is installed. Declarations come from mpi.h, addresses from the loaded
// library.
#pragma once

#define OMPI_SKIP_MPICXX 1 // the C interface alone; the C++ one warns
#include <mpi.h>

namespace trainc {

// Throws `failure` (exit_machine) where the library of the implementation that this was compiled
// for cannot be loaded.
void load_mpi();

// Whose MPI that is.
const char *mpi_name();

// The address of a function or an object of the loaded library.
void *mpi_symbol(const char *name);

} // namespace trainc

// mpi_call(MPI_Barrier)(MPI_COMM_WORLD)
#define mpi_call(function) reinterpret_cast<decltype(&::function)>(::trainc::mpi_symbol(#function))

// MPI_COMM_WORLD and its like are addresses of objects in Open MPI, and numbers in MPICH.
#ifdef OMPI_PREDEFINED_GLOBAL
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) static_cast<type>(::trainc::mpi_symbol(#global))
#endif
