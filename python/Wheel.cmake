# What a wheel holds besides the sources: the module, with all of Costate in it;
# LLVM, threads and maths as libraries beside it; stubs of its types.

set_target_properties(costate-python PROPERTIES BUILD_WITH_INSTALL_RPATH ON
                                                INSTALL_RPATH "$ORIGIN/lib")

set(compiler ${CMAKE_CXX_COMPILER})
if(CMAKE_CROSSCOMPILING)
  list(APPEND compiler --target=${CMAKE_CXX_COMPILER_TARGET} --sysroot=${CMAKE_SYSROOT})
endif()

# Built before, by another configuration of the same compiler (./dev wheel), or here.
if(COSTATE_OBJECTS)
  file(STRINGS ${COSTATE_OBJECTS}/archives.txt archives)
  set(link ${PROJECT_SOURCE_DIR}/cmake/link_llvm.sh)
  add_custom_command(OUTPUT ${COSTATE_LLVM_FILE}
    COMMAND ${link} ${COSTATE_OBJECTS}/archives.txt ${COSTATE_LLVM_FILE}
            ${LLVM_LIBRARY_DIRS} ${LLVM_TOOLS_BINARY_DIR} ${compiler}
    DEPENDS ${archives} ${link} COMMENT "Linking libcostate-llvm.so" VERBATIM)
  add_custom_target(costate-llvm-file DEPENDS ${COSTATE_LLVM_FILE})
  target_link_libraries(costate-python PRIVATE -Wl,--start-group ${archives} -Wl,--end-group
                        ${COSTATE_LLVM_FILE} Boost::context ${CMAKE_DL_LIBS})
  set_property(TARGET costate-python APPEND PROPERTY LINK_DEPENDS ${archives})
else()
  target_link_libraries(costate-python PRIVATE costate-layers)
endif()
add_dependencies(costate-python costate-llvm-file)

set(libraries ${COSTATE_LLVM_FILE})
foreach(name libsleef.so.3)
  execute_process(COMMAND ${compiler} -print-file-name=${name}
                  OUTPUT_VARIABLE file OUTPUT_STRIP_TRAILING_WHITESPACE)
  list(APPEND libraries ${file})
endforeach()
set(copies)
foreach(library ${libraries})
  get_filename_component(name ${library} NAME)
  add_custom_command(OUTPUT ${package}/lib/${name}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${package}/lib
    COMMAND ${LLVM_TOOLS_BINARY_DIR}/llvm-strip --strip-unneeded ${library}
            -o ${package}/lib/${name}
    DEPENDS ${library} VERBATIM)
  list(APPEND copies ${package}/lib/${name})
endforeach()
add_custom_target(costate-python-libraries DEPENDS ${copies})

# They are the same for all processors, and only one of this machine can be asked.
set(COSTATE_STUBS "" CACHE FILEPATH "of a wheel for another machine: stubs from this one")
if(CMAKE_CROSSCOMPILING)
  add_custom_command(OUTPUT ${package}/_core.pyi
    COMMAND ${CMAKE_COMMAND} -E copy ${COSTATE_STUBS} ${package}/_core.pyi
    DEPENDS ${COSTATE_STUBS} VERBATIM)
  add_custom_target(costate-python-stub DEPENDS ${package}/_core.pyi)
else()
  nanobind_add_stub(costate-python-stub MODULE _core PYTHON_PATH ${package}
                    OUTPUT ${package}/_core.pyi
                    PATTERN_FILE ${CMAKE_CURRENT_SOURCE_DIR}/bindings/stubs.txt
                    DEPENDS costate-python costate-python-libraries)
endif()

add_custom_target(costate-python-package
  DEPENDS costate-python costate-python-libraries costate-python-stub)
install(TARGETS costate-python LIBRARY DESTINATION costate COMPONENT python)
install(FILES ${copies} DESTINATION costate/lib COMPONENT python)
install(FILES ${package}/_core.pyi DESTINATION costate COMPONENT python)
