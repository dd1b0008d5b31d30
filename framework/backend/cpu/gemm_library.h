#pragma once

#include <cstdint>
#include <string>

#include "framework/backend/gemm.h"

namespace gs::backend {

// A library that multiplies matrices in the calling thread. Sizes are at least 1.
struct GemmLibrary {
  std::string name;    // as the user selects it
  std::string title;   // with the kernels it chose
  std::string remedy;  // what to do where these multiply wrongly
  void (*multiply_float)(const GemmSizes& sizes, const float* a, const float* b,
                         float* c) = nullptr;
  void (*multiply_double)(const GemmSizes& sizes, const double* a, const double* b,
                          double* c) = nullptr;  // or null
};

// Opened at the first call. OpenBLAS must be there; oneDNN is null where it is not.
const GemmLibrary& open_blas();
const GemmLibrary* one_dnn();

// Old kernels are known to compute wrongly on some processors: an Error with the remedy unless a
// few products with known results, in all forms, come out right. Takes microseconds.
void check_products(const GemmLibrary& library);

// A function of an opened library by its name, or an Error.
void* find_symbol(void* library, const char* name);

template <typename Function>
Function* symbol_of(void* library, const char* name) {
  return reinterpret_cast<Function*>(find_symbol(library, name));
}

}  // namespace gs::backend
