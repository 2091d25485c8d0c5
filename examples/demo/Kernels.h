#pragma once
/// The physics of a soft body as parallel kernels: the moving least squares
/// material point method in two dimensions, with quadratic weights, neo-Hookean
/// rubber and muscles. Units: metre, second, kilogram, for one metre of depth.
///
/// Hu et al., "A Moving Least Squares Material Point Method with Displacement
/// Discontinuity and Two-Way Rigid Body Coupling", SIGGRAPH 2018. Muscles and
/// the idea of learning to walk: Hu et al., "DiffTaichi", ICLR 2020 (diffmpm).
///
/// All arrays have the step as first index and every element is written once:
/// so the reverse sweep finds in memory what the steps computed.

#include "Algebra.h"

namespace pony {

// The world: 1.5 m wide, 0.75 m high, somewhere with the gravity of Mars.
inline constexpr int columns = 96, rows = 48; ///< nodes of the grid
inline constexpr double spacing = 1.0 / 64;   ///< between two nodes
inline constexpr int margin = 3;              ///< nodes inside walls and floor
inline constexpr double gravity = 3.7;
inline constexpr double friction = 0.8; ///< Coulomb's coefficient of the floor

inline constexpr int steps = 500;
inline constexpr double timeStep = 2e-3; ///< sound travels half a cell in it

// The flesh: soft rubber, as dense as water.
inline constexpr double density = 1000;
inline constexpr double youngsModulus = 1e4; ///< Pa
inline constexpr double poissonsRatio = 0.3;
inline constexpr double mu = youngsModulus / (2 * (1 + poissonsRatio));
inline constexpr double lambda =
    2 * mu * poissonsRatio / (1 - 2 * poissonsRatio);
inline constexpr double viscosity = 15; ///< Pa s

// A particle stands for a square of flesh.
inline constexpr double particleSize = spacing / 3.6;
inline constexpr double particleVolume = particleSize * particleSize;
inline constexpr double particleMass = density * particleVolume;

// The stress of a muscle is a sum of a few waves in time, squashed to a limit.
inline constexpr double strength = 3e3; ///< that limit, Pa
inline constexpr int waves = 4;         ///< each a sine and a cosine
inline constexpr double slowest = 4;    ///< angular frequency, rad/s

/// activation(step, muscle), -1 to 1, from weights(muscle, 2 * waves).
extern costate::Kernel activate;
/// Particles to grid: deforms particle F, adds up mass and momentum of nodes.
extern costate::Kernel scatter;
/// Grid: velocity from momentum; gravity, walls and floor.
extern costate::Kernel collide;
/// Grid to particles: velocity v, its gradient C, position x.
extern costate::Kernel gather;
/// loss = squared distance from the centre of the body to the target at the
/// end.
extern costate::Kernel measure;

} // namespace pony
