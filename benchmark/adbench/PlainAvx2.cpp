#define COSTATE_PLAIN avx2
#include "adbench/Plain.cpp"
