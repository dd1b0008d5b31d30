#include <cublasLt.h>
#include <dlfcn.h>

#include <string>

#include "framework/core/error.h"

// The functions of cuBLASLt that the products use, each handed on to the library, which is opened
// at the first call: it is hundreds of megabytes that a program on the CPU starts faster without,
// and runs where it is missing. The emulation has these functions itself.
namespace gs {
namespace {

void* open_library() {
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  for (const std::string& place : {name, GS_CUBLAS_FOLDER "/" + name}) {
    if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  const char* const reason = dlerror();
  fail(
      "matrix products: {} cannot be opened: {}; install cuBLAS of the CUDA Toolkit, or name its "
      "folder in LD_LIBRARY_PATH",
      name, reason == nullptr ? "no reason is given" : reason);
}

template <typename Function>
Function* find(const char* name) {
  static void* const library = open_library();
  void* const function = dlsym(library, name);
  check(function != nullptr, "matrix products: cuBLASLt lacks {}; install a newer one", name);
  return reinterpret_cast<Function*>(function);
}

}  // namespace
}  // namespace gs

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static const auto function = gs::find<decltype(cublasLtCreate)>("cublasLtCreate");
  return function(handle);
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  static const auto function =
      gs::find<decltype(cublasLtGetStatusString)>("cublasLtGetStatusString");
  return function(status);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description,
                                        cublasComputeType_t arithmetic, cudaDataType_t scalars) {
  static const auto function =
      gs::find<decltype(cublasLtMatmulDescCreate)>("cublasLtMatmulDescCreate");
  return function(description, arithmetic, scalars);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  static const auto function =
      gs::find<decltype(cublasLtMatmulDescDestroy)>("cublasLtMatmulDescDestroy");
  return function(description);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  static const auto function =
      gs::find<decltype(cublasLtMatmulDescSetAttribute)>("cublasLtMatmulDescSetAttribute");
  return function(description, attribute, value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t stride) {
  static const auto function =
      gs::find<decltype(cublasLtMatrixLayoutCreate)>("cublasLtMatrixLayoutCreate");
  return function(layout, type, rows, columns, stride);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  static const auto function =
      gs::find<decltype(cublasLtMatrixLayoutDestroy)>("cublasLtMatrixLayoutDestroy");
  return function(layout);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  static const auto function =
      gs::find<decltype(cublasLtMatrixLayoutSetAttribute)>("cublasLtMatrixLayoutSetAttribute");
  return function(layout, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  static const auto function =
      gs::find<decltype(cublasLtMatmulPreferenceCreate)>("cublasLtMatmulPreferenceCreate");
  return function(preference);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  static const auto function =
      gs::find<decltype(cublasLtMatmulPreferenceDestroy)>("cublasLtMatmulPreferenceDestroy");
  return function(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  static const auto function = gs::find<decltype(cublasLtMatmulPreferenceSetAttribute)>(
      "cublasLtMatmulPreferenceSetAttribute");
  return function(preference, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  static const auto function =
      gs::find<decltype(cublasLtMatmulAlgoGetHeuristic)>("cublasLtMatmulAlgoGetHeuristic");
  return function(handle, description, a, b, c, d, preference, wanted, results, found);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t bytes,
                              cudaStream_t stream) {
  static const auto function = gs::find<decltype(cublasLtMatmul)>("cublasLtMatmul");
  return function(handle, description, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d,
                  d_layout, algorithm, workspace, bytes, stream);
}

}  // extern "C"
