#pragma once
/// Ranks of MPI. In the library `costate::mpi` (`find_package(costate
/// COMPONENTS mpi)`), which is built where MPI is found.

#include "costate/distributed.h"

#include <optional>

namespace costate::distributed {

/// The ranks of MPI_COMM_WORLD; or those of another communicator, by the number
/// that MPI_Comm_c2f gives. Messages have a communicator of their own.
/// Initializes MPI if nobody has, and then ends it with the process. Buffers
/// go through memory of the host. A rank that does not answer within `timeout`
/// is Error(RankLost); most launchers end all ranks when one dies.
Group mpi(std::chrono::milliseconds timeout = std::chrono::seconds(30),
          std::optional<int> communicator = std::nullopt);

} // namespace costate::distributed
