# Text tests of the whole tree: *.mlir and *.test below src and test.
import os

import lit.formats

config.name = "costate"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir", ".test"]
config.test_source_root = config.source_dir
config.test_exec_root = config.build_dir + "/lit"
config.excludes = [".venv", "build", "cmake", "corpus", "benchmark", "docs", "examples", "failing", "include", "tools"]
config.substitutions.append(("%data", os.environ.get("COSTATE_DATA", "")))
config.environment["PATH"] = os.pathsep.join(
    [config.build_dir + "/bin", config.llvm_tools, config.environment["PATH"]]
)
config.environment["COSTATE_CACHE"] = "0"
for name in ("LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "COSTATE_DATA"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
if config.sanitize:
    config.available_features.add("asan")
if os.environ.get("COSTATE_DATA"):
    config.available_features.add("data")
