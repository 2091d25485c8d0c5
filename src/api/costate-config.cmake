# find_package(costate): the target costate::costate.
include(${CMAKE_CURRENT_LIST_DIR}/costate-targets.cmake)
