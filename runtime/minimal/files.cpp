// SPDX-License-Identifier: Apache-2.0
//
// An instance without files: parameters are given and taken by the caller.
#include "runtime/library/instance.h"

#include "runtime/failure.h"

namespace trainc {

static void refuse(const char *what, const char *instead) {
  throw failure(exit_usage, std::string(what) + ": a minimal library has no files\n  try: " +
                                instead + "; or trainc --library");
}

// The caller writes them.
void library_instance::load_initial_parameters() { has_parameters_ = false; }
void library_instance::load(const std::string &) { refuse("load", "write_all"); }
void library_instance::save(const std::string &) { refuse("save", "read_all"); }
void library_instance::save_state_dict(const std::string &) { refuse("save_state_dict", "read"); }
void library_instance::save_gradients(const std::string &) { refuse("save_gradients", "read"); }
void library_instance::load_state_dict(const std::string &) { refuse("load_state_dict", "write"); }
void library_instance::save_optimizer_state(const std::string &) {
  refuse("save_optimizer_state", "read");
}
void library_instance::load_optimizer_state(const std::string &) {
  refuse("load_optimizer_state", "write");
}
void library_instance::export_model(const std::string &) { refuse("export", "read_all"); }

} // namespace trainc
