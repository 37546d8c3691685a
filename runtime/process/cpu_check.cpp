// SPDX-License-Identifier: Apache-2.0
//
// Compares what the emitted code was built for with what this CPU has. Runs
// before anything else, in code built for the baseline: the alternative is a
// death by SIGILL somewhere in the first kernel.
#include "runtime/process/cpu_check.h"

#include <string_view>

namespace trainc {
namespace {

struct feature_row {
  std::string_view name;
  bool (*present)();
};

#define FEATURE(name)                                                                              \
  {                                                                                                \
    name, [] { return __builtin_cpu_supports(name) != 0; }                                         \
  }
constexpr feature_row features[] = {
    FEATURE("sse3"),       FEATURE("ssse3"),        FEATURE("sse4.1"),
    FEATURE("sse4.2"),     FEATURE("popcnt"),       FEATURE("avx"),
    FEATURE("avx2"),       FEATURE("fma"),          FEATURE("bmi"),
    FEATURE("bmi2"),       FEATURE("f16c"),         FEATURE("lzcnt"),
    FEATURE("movbe"),      FEATURE("avx512f"),      FEATURE("avx512bw"),
    FEATURE("avx512cd"),   FEATURE("avx512dq"),     FEATURE("avx512vl"),
    FEATURE("avx512vnni"), FEATURE("avx512vbmi"),   FEATURE("avx512vbmi2"),
    FEATURE("avx512ifma"), FEATURE("avx512bitalg"), FEATURE("avx512vpopcntdq"),
    FEATURE("avx512bf16"), FEATURE("avx512fp16"),   FEATURE("avxvnni"),
    FEATURE("vaes"),       FEATURE("vpclmulqdq"),   FEATURE("gfni"),
    FEATURE("amx-tile"),   FEATURE("amx-int8"),     FEATURE("amx-bf16"),
    FEATURE("adx"),        FEATURE("sse4a"),
};
#undef FEATURE

constexpr std::string_view v2 = "sse3,ssse3,sse4.1,sse4.2,popcnt";
constexpr std::string_view v3 = "sse3,ssse3,sse4.1,sse4.2,popcnt,avx,avx2,fma,bmi,bmi2,f16c,lzcnt,"
                                "movbe";
constexpr std::string_view v4 = "sse3,ssse3,sse4.1,sse4.2,popcnt,avx,avx2,fma,bmi,bmi2,f16c,lzcnt,"
                                "movbe,avx512f,avx512bw,avx512cd,avx512dq,avx512vl";

// Features that GCC 12 may use for a name, beyond a level; those without a
// detector in GCC come along with the ones listed.
struct march_row {
  std::string_view name;
  std::string_view level;
  std::string_view extra;
};
constexpr march_row marches[] = {
    {"x86-64", "", ""},
    {"x86-64-v2", v2, ""},
    {"x86-64-v3", v3, ""},
    {"x86-64-v4", v4, ""},
    {"nehalem", v2, ""},
    {"westmere", v2, ""},
    {"sandybridge", v2, "avx"},
    {"ivybridge", v2, "avx,f16c"},
    {"haswell", v3, ""},
    {"broadwell", v3, "adx"},
    {"skylake", v3, "adx"},
    {"skylake-avx512", v4, "adx"},
    {"cascadelake", v4, "adx,avx512vnni"},
    {"cooperlake", v4, "adx,avx512vnni,avx512bf16"},
    {"icelake-client", v4, "adx,avx512vnni,avx512vbmi,avx512vbmi2,avx512ifma,avx512bitalg,gfni"},
    {"icelake-server", v4, "adx,avx512vnni,avx512vbmi,avx512vbmi2,avx512ifma,avx512bitalg,gfni"},
    {"tigerlake", v4, "adx,avx512vnni,avx512vbmi,avx512vbmi2,avx512ifma,avx512bitalg,gfni"},
    {"sapphirerapids", v4,
     "adx,avx512vnni,avx512vbmi,avx512vbmi2,avx512ifma,avx512bitalg,gfni,avx512bf16,avx512fp16,"
     "amx-tile,amx-int8,amx-bf16"},
    {"alderlake", v3, "adx,avxvnni,gfni"},
    {"znver1", v3, "adx,sse4a"},
    {"znver2", v3, "adx,sse4a"},
    {"znver3", v3, "adx,sse4a,vaes,vpclmulqdq"},
    {"znver4", v4,
     "adx,sse4a,vaes,vpclmulqdq,avx512vnni,avx512vbmi,avx512vbmi2,avx512ifma,avx512bitalg,gfni,"
     "avx512bf16"},
};

void add_missing(std::string_view list, std::string &missing) {
  while (!list.empty()) {
    size_t comma = list.find(',');
    std::string_view name = list.substr(0, comma);
    for (const feature_row &row : features)
      if (row.name == name && !row.present())
        missing.append(missing.empty() ? "" : ", ").append(name);
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
}

} // namespace

bool cpu_supports(const char *march, std::string *missing) {
  __builtin_cpu_init();
  std::string absent;
  std::string_view name = march;
  const march_row *known = nullptr;
  for (const march_row &row : marches)
    if (row.name == name)
      known = &row;
  if (known) {
    add_missing(known->level, absent);
    add_missing(known->extra, absent);
  } else {
    add_missing(name, absent);
  }
  if (missing)
    *missing = absent;
  return absent.empty();
}

} // namespace trainc
