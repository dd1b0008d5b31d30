#pragma once

#include "framework/backend/cross_entropy.h"

namespace gs::backend {

// cross_entropy over `rows` rows in memory; dlogits is null where no gradient is wanted.
template <typename T>
CrossEntropySums cross_entropy_rows(T* dlogits, const T* logits, const int32_t* targets,
                                    int64_t rows, int64_t classes,
                                    const CrossEntropyOptions& options);

extern template CrossEntropySums cross_entropy_rows(float*, const float*, const int32_t*, int64_t,
                                                    int64_t, const CrossEntropyOptions&);
extern template CrossEntropySums cross_entropy_rows(double*, const double*, const int32_t*, int64_t,
                                                    int64_t, const CrossEntropyOptions&);

}  // namespace gs::backend
