// SPDX-License-Identifier: Apache-2.0
//
// The optimizer of PyTorch's default exporter takes out products with 1, quotients by 1, and sums
// and differences with 0, where that is a number without axes: also where it is a parameter that
// starts so, or what was computed from one.
#pragma once

#include "compiler/onnx/exported_program.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <set>
#include <string>

namespace trainc::reader {

struct TakenOut {
  /// A calculation with floats is gone. It may have read any parameter that no call names.
  bool calculates = false;
  /// What moves floats is gone (a view, a dropout), and perhaps a calculation before it.
  bool moves = false;
  /// Parameters that calls name, and of which what is gone may have read a number as well.
  std::set<std::string> numbers;
  /// Parameters of layers of which what is gone may have read an element, though that is unlikely.
  std::set<std::string> elements;
  /// Parameters that are no number without axes by their names, if they are not in the file.
  std::set<std::string> unused;
  /// Of these, such as are alone in a module: by their names, they may be one.
  std::set<std::string> single;

  /// The same of a parameter that is not in the file: of such only the name is known.
  bool mayHaveRead(const std::string &parameter) const;
  /// Of one that it has not read by its name, but may have.
  bool isUnclear(const std::string &parameter) const;
};

/// `isLost`: of a value that calls name, that no call in the file makes it.
TakenOut findTakenOut(const ModelFile &file, const ExportedProgram &program,
                      llvm::function_ref<bool(const std::string &)> isLost);

} // namespace trainc::reader
