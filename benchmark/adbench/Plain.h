#pragma once
/// The objectives, and one gradient, in plain C++: the yardstick, and a check
/// by complex steps.

#include "adbench/Data.h"

/// Plain.cpp is compiled for the processor, and for AVX2.
#ifndef COSTATE_PLAIN
#define COSTATE_PLAIN native
#endif

namespace costate::adbench {
namespace avx2 {
std::vector<double> gmmGradient(const GmmInput &gmm);
} // namespace avx2

namespace COSTATE_PLAIN {

/// The terms of the GMM objective that do not depend on its parameters.
double gmmConstant(const GmmInput &gmm);
double gmmObjective(const GmmInput &gmm);
/// Of alpha, mu, icf; written by hand.
std::vector<double> gmmGradient(const GmmInput &gmm);
/// The derivative of the objective along `direction` (alpha, mu, icf in one
/// vector), by a complex step.
double gmmDirectional(const GmmInput &gmm,
                      const std::vector<double> &direction);

double lstmObjective(const LstmInput &lstm);
/// Along `direction` (main, extra in one vector), by a complex step.
double lstmDirectional(const LstmInput &lstm,
                       const std::vector<double> &direction);

/// p x 2, into `residuals`.
void baResiduals(const BaInput &ba, std::vector<double> &residuals);
/// p x 30, column by column, by complex steps.
std::vector<double> baJacobians(const BaInput &ba);

} // namespace COSTATE_PLAIN
using namespace COSTATE_PLAIN;
} // namespace costate::adbench
