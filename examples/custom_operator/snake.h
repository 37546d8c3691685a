// SPDX-License-Identifier: Apache-2.0
//
// Snake (Ziyin, Hartwig and Ueda 2020), an activation for what is periodic, with a parameter for
// each channel:
//
//   y = scale * (x + sin(alpha x)^2 / alpha)
//
// Of `rows` rows of `channels` elements. trainc calls the function with the numbers of snake.json,
// the addresses of the inputs and those of the outputs, and the overload of the model's float type.
#pragma once

#include <cstdint>

void snake(int64_t rows, int64_t channels, double scale, const float *x, const float *alpha,
           float *y);
void snake(int64_t rows, int64_t channels, double scale, const double *x, const double *alpha,
           double *y);

// The gradients of x and alpha from that of y.
void snake_gradient(int64_t rows, int64_t channels, double scale, const float *x,
                    const float *alpha, const float *dy, float *dx, float *dalpha);
void snake_gradient(int64_t rows, int64_t channels, double scale, const double *x,
                    const double *alpha, const double *dy, double *dx, double *dalpha);
