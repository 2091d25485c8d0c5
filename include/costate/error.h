#pragma once
/// The one exception type of Costate.

#include <stdexcept>
#include <string>

namespace costate {

enum class ErrorCode {
  /// Wrong number, dtype, rank, shape or device of arguments, a negative or
  /// too large extent, overlapping written arguments.
  BadArgument,
  /// The kernel's source breaks a rule of the language (`BREAK` outside a
  /// loop).
  BadKernel,
  /// `.grad()` or `.dual()` of an array that has none, or a derivative launch
  /// that would have to drop a derivative for want of one.
  MissingGradient,
  /// An operation on the way from input to output has no derivative.
  NotDifferentiable,
  /// The gradient would have to run on memory that is no longer there.
  CannotReplay,
  /// What a graph cannot repeat: copies between device and host, or a launch
  /// that has to wait for the device.
  CannotCapture,
  /// An index outside an array, in a kernel with `debug`.
  OutOfRange,
  /// One work item of a range stores an element that another one uses, in a
  /// kernel with `debug`.
  Race,
  /// An ASSERT does not hold, in a kernel with `debug`.
  AssertionFailed,
  /// An operation has given inf or NaN, in a kernel with `find_nan`.
  NotFinite,
  /// Host or device memory is exhausted, or a limit that was set is reached.
  OutOfMemory,
  /// A device, driver or feature is missing.
  NoDevice,
  /// Something else went wrong while a kernel ran (step 0 in a loop).
  KernelFailed,
  /// The program has ended the launch while it ran; see set_interrupt_check.
  Interrupted,
  /// A file cannot be read or written, or has wrong contents.
  BadFile,
  /// A rank of a distributed program has ended or left, or has not answered
  /// within the timeout.
  RankLost,
  /// A defect of Costate itself.
  Internal,
};

/// What every function of Costate throws. `what()` states the situation, the
/// place in the user's source where there is one, and a way out.
class Error : public std::runtime_error {
public:
  Error(ErrorCode code, const std::string &text)
      : std::runtime_error(text), errorCode(code) {}
  ErrorCode code() const noexcept { return errorCode; }

private:
  ErrorCode errorCode;
};

} // namespace costate
