// What many programs of this tree include.
#include "standard.h"

#include "costate/costate.h"
#include "costate/syntax.h"

#include <cstdio>
#include <fstream>
#include <iostream>
