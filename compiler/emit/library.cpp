// SPDX-License-Identifier: Apache-2.0
#include "compiler/emit/library.h"

#include "llvm/ADT/StringExtras.h"

std::string trainc::libraryName(llvm::StringRef modelName) {
  std::string name = "model_";
  for (char c : modelName)
    name += llvm::isAlnum(c) ? c : '_';
  return name;
}

std::string trainc::libraryText(llvm::StringRef text, llvm::StringRef name) {
  std::string result;
  const std::string upper = name.upper();
  const std::pair<llvm::StringRef, llvm::StringRef> words[] = {
      {"@model@", name}, {"trainc_model", name}, {"TRAINC_MODEL", upper}};
  // In forwards.inc the runtime's own names stay.
  const bool isMarked = text.contains("@model@");
  while (!text.empty()) {
    bool isWord = false;
    for (const auto &[word, replacement] : words)
      if ((isMarked == (word == words[0].first)) && text.consume_front(word)) {
        result += replacement;
        isWord = true;
        break;
      }
    if (!isWord) {
      result += text.front();
      text = text.drop_front();
    }
  }
  return result;
}

std::string trainc::libraryBuildText(llvm::StringRef name) {
  return ("set(LIBRARY " + name + ")\n").str() +
         R"(get_target_property(sources trainer SOURCES)
add_library(${LIBRARY} SHARED ${sources} library.cpp)
foreach(property CXX_STANDARD CXX_EXTENSIONS COMPILE_FEATURES COMPILE_OPTIONS INCLUDE_DIRECTORIES LINK_LIBRARIES
    UNITY_BUILD UNITY_BUILD_MODE)
  get_target_property(value trainer ${property})
  if(NOT value MATCHES "NOTFOUND$")
    set_property(TARGET ${LIBRARY} PROPERTY ${property} "${value}")
  endif()
endforeach()
target_compile_options(${LIBRARY} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-gnu-unique>)
set_target_properties(${LIBRARY} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
# All that is not the interface is local.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/library.map "{ global: ${LIBRARY}_*; local: *; };")
target_link_options(${LIBRARY} PRIVATE -Wl,--version-script=${CMAKE_CURRENT_BINARY_DIR}/library.map)
)";
}

std::string trainc::pkgConfigText(llvm::StringRef name, llvm::StringRef modelName,
                                  llvm::StringRef libraries) {
  return ("prefix=${pcfiledir}\n\nName: " + name + "\nDescription: the model " + modelName +
          ", to be trained\nVersion: 1\nCflags: -I${prefix}\nLibs: -L${prefix} -l" + name +
          "\nLibs.private: " + libraries + "\n")
      .str();
}
