// The headers that many tests include.
#include "../cmake/pch/mlir.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>
#include <thread>
