# Functions that the CMakeLists of this tree are written in.

include_directories(${PROJECT_SOURCE_DIR}/include)
add_compile_options(-fPIC -Wall -Wextra -Werror=switch -Wno-unused-parameter -fvisibility-inlines-hidden
                    -ffp-contract=off)
if(COSTATE_ASSERTIONS)
  add_compile_definitions(COSTATE_ASSERTIONS=1)
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_definitions(NDEBUG)
endif()
if(COSTATE_SANITIZE)
  add_compile_definitions(COSTATE_SANITIZE=1)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr,function
                      -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-runtime-dir
                  OUTPUT_VARIABLE sanitizers OUTPUT_STRIP_TRAILING_WHITESPACE)
  add_link_options(-fsanitize=address,undefined -shared-libsan
                   -Wl,-rpath,${sanitizers})
endif()

set(COSTATE_LLVM MLIR LLVM)
if(COSTATE_STATIC)
  include(cmake/StaticLlvm.cmake)
  set(COSTATE_LLVM costate-llvm)
endif()

# Generated headers; every library that includes MLIR waits for them.
add_custom_target(costate-headers)

# costate_precompiled(HEADER): cmake/pch/HEADER.h as costate-pch-HEADER, for all
# targets of the same flags; made where one uses it.
function(costate_precompiled header)
  add_library(costate-pch-${header} STATIC EXCLUDE_FROM_ALL
              ${PROJECT_SOURCE_DIR}/cmake/pch/pch.cpp)
  target_precompile_headers(costate-pch-${header}
                            PRIVATE ${PROJECT_SOURCE_DIR}/cmake/pch/${header}.h)
endfunction()

costate_precompiled(api)
costate_precompiled(mlir)
costate_precompiled(standard)
target_include_directories(costate-pch-mlir SYSTEM PUBLIC ${LLVM_INCLUDE_DIRS}
                                                          ${MLIR_INCLUDE_DIRS})

# costate_library(NAME SOURCES...): one without MLIR.
function(costate_library name)
  add_library(${name} STATIC ${ARGN})
  set_property(GLOBAL APPEND PROPERTY COSTATE_LIBRARIES ${name})
  target_precompile_headers(${name} REUSE_FROM costate-pch-standard)
endfunction()

# costate_mlir_library(NAME SOURCES...): one that uses MLIR.
function(costate_mlir_library name)
  add_library(${name} STATIC ${ARGN})
  set_property(GLOBAL APPEND PROPERTY COSTATE_LIBRARIES ${name})
  costate_uses_mlir(${name})
endfunction()

# costate_closed_switches(NAME): a layer whose switches name every enumerator, so
# that the compiler shows where a new one is to be handled.
function(costate_closed_switches name)
  target_compile_options(${name} PRIVATE -Werror=switch-enum)
endfunction()

function(costate_uses_mlir name)
  target_include_directories(${name} SYSTEM PUBLIC ${LLVM_INCLUDE_DIRS}
                                                   ${MLIR_INCLUDE_DIRS})
  target_include_directories(${name} PUBLIC ${PROJECT_BINARY_DIR}/src) # generated
  target_link_libraries(${name} PUBLIC ${COSTATE_LLVM})
  add_dependencies(${name} costate-headers)
  target_precompile_headers(${name} REUSE_FROM costate-pch-mlir)
endfunction()

# costate_layer(TARGET [USES TARGETS...] [LINKS TARGETS...]): what this folder
# LAYER holds is "LAYER/..." to TARGET and to the layers that use it, and to no
# others: each layer has an include folder in which it stands alone. Whoever uses
# a layer may use what that uses. Of those that are only linked, the headers of
# the layer itself are seen, but nothing below.
function(costate_layer target)
  cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "USES;LINKS")
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME name)
  set(root ${PROJECT_BINARY_DIR}/layers/${name})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/${name} SYMBOLIC)
  get_target_property(type ${target} TYPE)
  set(scope PUBLIC)
  if(type STREQUAL INTERFACE_LIBRARY)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} ${root})
  target_link_libraries(${target} ${scope} ${layer_USES})
  set_target_properties(${target} PROPERTIES COSTATE_LAYER ${root})
  foreach(linked ${layer_LINKS})
    get_target_property(below ${linked} COSTATE_LAYER)
    target_include_directories(${target} PRIVATE ${below})
    target_link_libraries(${target} PRIVATE $<LINK_ONLY:${linked}>)
  endforeach()
endfunction()

# costate_tests(FILES...): GoogleTest files of this folder, linked into the one
# test binary.
function(costate_tests)
  foreach(file ${ARGN})
    set_property(GLOBAL APPEND PROPERTY COSTATE_TEST_FILES
                 ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
endfunction()

# costate_benchmarks(FILES...): Google Benchmark files of this folder, linked
# into the one program `costate-microbench`.
function(costate_benchmarks)
  foreach(file ${ARGN})
    set_property(GLOBAL APPEND PROPERTY COSTATE_BENCHMARK_FILES
                 ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
endfunction()
