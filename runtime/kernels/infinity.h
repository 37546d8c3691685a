// SPDX-License-Identifier: Apache-2.0
//
// INFINITY and NAN as <cmath> has them, which takes a compiler 0.3 s to read: as long as it needs
// for a whole emitted file.
#pragma once

#ifndef INFINITY
#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#endif
