// SPDX-License-Identifier: Apache-2.0
//
// What a process still says where its work does not return: at a fatal signal, at a second wish
// that it ends, or where the watchdog ends the job.
#pragma once

#include <atomic>

namespace trainc {

class last_words {
public:
  // May be called in the handler of a signal, while other threads go on. The first line of `why`
  // counts.
  virtual void say(int code, const char *why) = 0;

protected:
  ~last_words() = default;
};

// Null: there is nothing to be said. Who takes it away is the one that says how the process ends.
inline std::atomic<last_words *> words_of_process = nullptr;
// While that is said: the words must not go away.
inline std::atomic<bool> are_being_said = false;

inline void say_last_words(int code, const char *why) {
  are_being_said = true;
  if (last_words *words = words_of_process.exchange(nullptr))
    words->say(code, why);
  are_being_said = false;
}

} // namespace trainc
