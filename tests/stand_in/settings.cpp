// SPDX-License-Identifier: Apache-2.0
#include "settings.h"
#include "report.h"

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

namespace trainc::stand_in {

namespace {

template <typename T> T number(std::string_view word, std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    fail("TRAINC_STAND_IN", "'" + std::string(word) + "' needs a number");
  return value;
}

void set_threads(settings &result, std::string_view word, std::string_view value) {
  constexpr std::string_view random = "random:";
  if (value == "forward")
    result.threads = thread_order::forward;
  else if (value == "reverse")
    result.threads = thread_order::reverse;
  else if (value.substr(0, random.size()) == random) {
    result.threads = thread_order::random;
    result.seed = number<uint64_t>(word, value.substr(random.size()));
  } else
    fail("TRAINC_STAND_IN",
         "'" + std::string(word) + "': threads are forward, reverse or random:SEED");
}

void set(settings &result, std::string_view word) {
  const size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
  if (name == "threads")
    set_threads(result, word, value);
  else if (word == "streams=eager" || word == "streams=late")
    result.late = value == "late";
  else if (name == "devices")
    result.devices = number<int>(word, value);
  else if (name == "first")
    result.first = number<int>(word, value);
  else if (name == "memory")
    result.free_memory = number<size_t>(word, value);
  else if (name == "pages")
    result.page_bytes = number<size_t>(word, value);
  else if (name == "driver")
    result.driver = number<int>(word, value);
  else if (name == "capability" && value.find('.') != std::string_view::npos) {
    result.capability_major = number<int>(word, value.substr(0, value.find('.')));
    result.capability_minor = number<int>(word, value.substr(value.find('.') + 1));
  } else if (word == "nccl=fail")
    result.nccl_fails = true;
  else if (word == "cublas=fail")
    result.cublas_fails = true;
  else if (word == "epilogues=none")
    result.no_epilogues = true;
  else if (word == "cudnn=none")
    result.no_cudnn = true;
  else if (word == "cudnn=fail")
    result.cudnn_fails = true;
  else
    fail("TRAINC_STAND_IN", "unknown word '" + std::string(word) + "'");
}

settings parse(std::string_view text) {
  settings result;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    if (!word.empty())
      set(result, word);
  }
  return result;
}

settings &instance() {
  static settings value = [] {
    const char *text = std::getenv("TRAINC_STAND_IN");
    return parse(text == nullptr ? "" : text);
  }();
  return value;
}

} // namespace

const settings &options() { return instance(); }
void set_options(const char *text) { instance() = parse(text); }

} // namespace trainc::stand_in
