# find_package(costate [COMPONENTS mpi]): the targets costate::costate and costate::mpi.
include(${CMAKE_CURRENT_LIST_DIR}/costate-targets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/costate-mpi-targets.cmake OPTIONAL RESULT_VARIABLE costate_mpi_FOUND)
foreach(component ${costate_FIND_COMPONENTS})
  if(costate_FIND_REQUIRED_${component} AND NOT costate_${component}_FOUND)
    set(costate_FOUND FALSE)
    set(costate_NOT_FOUND_MESSAGE "costate was built without its component ${component}")
  endif()
endforeach()
