# SPDX-License-Identifier: Apache-2.0
#
# lit's configuration. Operation and pass tests are .mlir files, import tests
# .onnxtxt files, end-to-end tests bash scripts with a RUN line that runs them.
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
import formats

config.name = "trainc"
config.test_format = formats.ShellTest(execute_external=True)
config.suffixes = [".mlir", ".onnxtxt", ".test"]
config.excludes = ["bench", "models", "python"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.build_folder, "tests")

programs = os.path.join(config.build_folder, "bin")
scratch = os.path.join(config.test_exec_root, "scratch")
os.makedirs(scratch, exist_ok=True)

# The interpreter that runs lit, and no script that looks for one each time.
config.environment["PATH"] = os.pathsep.join(
    [programs, config.llvm_tools, os.path.dirname(sys.executable), config.environment.get("PATH", "")])
config.environment["TRAINC"] = os.path.join(programs, "trainc")
config.environment["TRAINC_RUN"] = os.path.join(programs, "trainc-run")
config.environment["TRAINC_OPT"] = os.path.join(programs, "trainc-opt")
config.environment["TRAINC_COMPARE"] = os.path.join(programs, "trainc-compare")
config.environment["TRAINC_FILL"] = os.path.join(programs, "trainc-fill")
config.environment["TRAINC_DATA"] = os.path.join(programs, "trainc-data")
config.environment["TRAINC_INSPECT"] = os.path.join(programs, "trainc-inspect")
config.environment["TRAINC_SIMULATE"] = os.path.join(programs, "trainc-simulate")
config.environment["TRAINC_BUILD"] = config.build_folder
config.environment["TRAINC_MODELS"] = os.path.join(config.test_source_root, "models")
config.environment["TMPDIR"] = scratch
config.environment["TRAINC_WARNINGS_ARE_ERRORS"] = "1"  # of the emitted source; users see warnings
# LLVM's inline allocator poisons memory which the shared library, built without a sanitizer, uses.
# Some tests preload a library of faults or counts.
config.environment["ASAN_OPTIONS"] = "allow_user_poisoning=0:verify_asan_link_order=0"
for name in ("HOME", "CCACHE_DIR", "CCACHE_DISABLE", "LONG", "SEED", "OMP_NUM_THREADS", "TRAINC_TESTS_WITHOUT_MOUNTS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# Longer names first: lit replaces text, not words.
config.substitutions.append(("%section", os.path.join(config.test_source_root, "section.sh")))
config.substitutions.append(("%numbers", "%s %s" % (os.path.join(config.test_source_root, "numbers.sh"),
                                                    os.path.join(programs, "trainc"))))
for program in ("trainc-check-gradient", "trainc-inspect", "trainc-compare", "trainc-fill",
                "trainc-opt"):
    config.substitutions.append(("%" + program, os.path.join(programs, program)))
config.substitutions.append((r"%trainc\b", os.path.join(programs, "trainc")))
config.substitutions.append((r"%FileCheck\b", os.path.join(config.llvm_tools, "FileCheck")))
