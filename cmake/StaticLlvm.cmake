# LLVM and MLIR for machines without them: one shared library of what this tree
# uses of their static archives. The programs share it, so it is there once.

set(COSTATE_LLVM_FILE ${PROJECT_BINARY_DIR}/lib/libcostate-llvm.so)

# The same layout in the build folder and in the archive; lib/runtime holds what
# only the programs of the archive must find.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib" "$ORIGIN/../lib/runtime")

# Texts of messages and of tests name no folder of the machine that built them.
add_compile_options(-ffunction-sections -fdata-sections
                    -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
add_link_options(-Wl,--gc-sections)

# So that all runs with glibc 2.34 and the libraries of GCC 11: half of `f16` is
# in a newer libgcc_s, but in each libgcc.a.
add_library(costate-older STATIC ${PROJECT_SOURCE_DIR}/cmake/older_libraries.c)
set_target_properties(costate-older PROPERTIES C_VISIBILITY_PRESET hidden)
add_link_options(@${PROJECT_SOURCE_DIR}/cmake/older_libraries.rsp)
set(CMAKE_CXX_STANDARD_LIBRARIES "-l:libgcc.a")

# A path, not a target: the library is linked after the objects of all targets
# that link it are compiled, and a cycle between files there is not.
add_library(costate-llvm INTERFACE)
target_link_libraries(costate-llvm INTERFACE ${COSTATE_LLVM_FILE})

function(costate_targets folder types result)
  get_property(found DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  set(all)
  foreach(target ${found})
    get_target_property(type ${target} TYPE)
    if(type MATCHES "${types}")
      list(APPEND all ${target})
    endif()
  endforeach()
  foreach(inner ${below})
    costate_targets(${inner} "${types}" more)
    list(APPEND all ${more})
  endforeach()
  set(${result} ${all} PARENT_SCOPE)
endfunction()

# Not link_libraries(), which would have it exported with the installed targets.
function(costate_link_older)
  costate_targets(${PROJECT_SOURCE_DIR} "SHARED_LIBRARY|MODULE_LIBRARY|EXECUTABLE" targets)
  set_property(TARGET ${targets} APPEND PROPERTY LINK_LIBRARIES costate-older)
endfunction()

# Both are called when all targets are there.
function(costate_link_llvm)
  costate_targets(${PROJECT_SOURCE_DIR} "STATIC_LIBRARY|EXECUTABLE" targets)
  list(TRANSFORM targets REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/objects.txt
       CONTENT "$<JOIN:$<FILTER:${objects},EXCLUDE,[.]pch$>,\n>\n")
  add_custom_command(OUTPUT ${COSTATE_LLVM_FILE}
    COMMAND ${PROJECT_SOURCE_DIR}/cmake/link_llvm.sh ${PROJECT_BINARY_DIR}/objects.txt
            ${COSTATE_LLVM_FILE} ${LLVM_LIBRARY_DIRS} ${LLVM_TOOLS_BINARY_DIR}
            ${CMAKE_CXX_COMPILER}
    DEPENDS ${objects} ${PROJECT_SOURCE_DIR}/cmake/link_llvm.sh
            ${PROJECT_SOURCE_DIR}/cmake/older_libraries.c ${PROJECT_SOURCE_DIR}/cmake/llvm_nothing.c
    COMMENT "Linking libcostate-llvm.so" VERBATIM)
  add_custom_target(costate-llvm-file DEPENDS ${COSTATE_LLVM_FILE})
endfunction()
