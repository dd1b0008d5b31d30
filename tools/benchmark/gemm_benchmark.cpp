#include <algorithm>
#include <string>

#include "framework/backend/gemm.h"
#include "tools/benchmark/measure.h"

// Bound by arithmetic: compare the FLOP rate with the processor's, and the libraries with each
// other.
namespace gs {
namespace {

enum Form : int64_t { kForward, kGradientOfInput, kGradientOfWeight };

// A layer of weight (out, in) over tokens: y = x weight^T (NT), dx = dy weight (NN), dweight = dy^T
// x (TN).
backend::GemmSizes sizes_of(Form form, int64_t tokens, int64_t in, int64_t out) {
  switch (form) {
    case kForward:
      return {.m = tokens,
              .n = out,
              .k = in,
              .transpose_b = true,
              .a_stride = in,
              .b_stride = in,
              .c_stride = out};
    case kGradientOfInput:
      return {.m = tokens, .n = in, .k = out, .a_stride = out, .b_stride = in, .c_stride = in};
    default:
      return {.m = out,
              .n = in,
              .k = tokens,
              .transpose_a = true,
              .a_stride = out,
              .b_stride = in,
              .c_stride = in};
  }
}

void gemm(benchmark::State& state, const std::string& library, Form form) {
  const Threads limit(state.range(3));
  const std::string before = backend::gemm_libraries().front();
  backend::use_gemm_library(library);
  const backend::GemmSizes sizes = sizes_of(form, state.range(0), state.range(1), state.range(2));
  const Array a = random_array({sizes.m * sizes.k}, 1), b = random_array({sizes.k * sizes.n}, 2);
  Array c = Array::zeros({sizes.m * sizes.n}, kFloat32);
  measure(state, sizes.m * sizes.k + sizes.k * sizes.n + sizes.m * sizes.n,
          2.0 * static_cast<double>(sizes.m * sizes.n * sizes.k),
          [&] { backend::gemm(Cpu{}, sizes, a.data<float>(), b.data<float>(), c.data<float>()); });
  backend::use_gemm_library(before.starts_with("oneDNN") ? "onednn" : "openblas");
}

// One for each library that is installed.
const bool registered = [] {
  for (const std::string& title : backend::gemm_libraries()) {
    const std::string library = title.starts_with("oneDNN") ? "onednn" : "openblas";
    for (const auto& [form, name] : {std::pair{kForward, "gemm_NT/"},
                                     {kGradientOfInput, "gemm_NN/"},
                                     {kGradientOfWeight, "gemm_TN/"}}) {
      auto* benchmark = benchmark::RegisterBenchmark(
          (name + library).c_str(),
          [library, form = form](benchmark::State& state) { gemm(state, library, form); });
      benchmark->ArgNames({"tokens", "in", "out", "threads"})->UseRealTime();
      for (const int64_t threads : {1, 2}) {
        for (const int64_t tokens : {512, 4096}) {
          benchmark->Args({tokens, 128, 128, threads})->Args({tokens, 128, 256, threads});
          benchmark->Args({tokens, 256, 256, threads})->Args({tokens, 256, 1024, threads});
        }
        benchmark->Args({1024, 128, 6000, threads})->Args({1024, 256, 8000, threads});
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace gs
