#pragma once
/// The statement tree as bytes (cache/Archive.h).

#include "cache/Archive.h"
#include "syntax/Syntax.h"

COSTATE_FIELDS(costate::ElementForm, name, count, layout, isPart);
COSTATE_FIELDS(costate::syntax::Statement, kind, op, type, value, argument,
               variable, dim, bits, condition, operands, indices, results,
               blocks, loc);
COSTATE_FIELDS(costate::syntax::Argument, type, rank, form, number, extents);
COSTATE_FIELDS(costate::syntax::Variable, type, loc);
COSTATE_FIELDS(costate::syntax::Local, type, size, loc);
COSTATE_FIELDS(costate::syntax::OrderLimit, order, what, loc);
COSTATE_FIELDS(costate::syntax::Kernel, name, loc, arguments, variables, locals,
               values, texts, body, limit, functions, parameters, results);
