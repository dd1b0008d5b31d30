#include "models/precision.h"

#include <gtest/gtest.h>

#include "framework/backend/gemm.h"
#include "tests/models/small_models.h"
#include "tests/models/small_trainings.h"
#include "tests/support/devices.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using PrecisionOnCuda = test::CudaTest;

TEST(Precision, OnTheCpuIsFloat32) {
  const auto model = test::small_transformer(1);
  set_precision(*model, "float32");
  EXPECT_FALSE(model->uses_bfloat16());
  EXPECT_EQ(error_of([&] { model->use_bfloat16(true); }),
            "transformer: bfloat16 needs a CUDA device, got cpu; move the model there first");
  for (const std::string precision : {"bfloat16", "tf32"}) {
    const std::string message = "--precision " + precision +
                                ": needs a CUDA device, got --device cpu; use --precision float32";
    EXPECT_EQ(error_of([&] { set_precision(*model, precision); }), message);
    TranslationSettings settings = test::small_settings();
    settings.precision = precision;
    EXPECT_EQ(error_of([&] { TranslationTraining(settings, test::toy_split(4)); }), message);
  }
  EXPECT_FALSE(backend::uses_tf32());
}

TEST_F(PrecisionOnCuda, ChangesAsOftenAsWanted) {
  const auto model = test::small_transformer(1);
  model->to(Device::cuda());
  for (const std::string precision : {"tf32", "bfloat16", "float32"}) {
    set_precision(*model, precision);
    EXPECT_EQ(model->uses_bfloat16(), precision == "bfloat16");
    EXPECT_EQ(backend::uses_tf32(), precision == "tf32");
  }
}

// A model that has gone back to the CPU says so; it does not compute there.
TEST_F(PrecisionOnCuda, StaysWithTheDevice) {
  const auto model = test::small_transformer(1);
  model->to(Device::cuda());
  set_precision(*model, "bfloat16");
  model->to(Device::cpu());
  EXPECT_EQ(error_of([&] {
              model->encode(test::sequences({{5, 2}}));
            }),
            "transformer: bfloat16 needs a CUDA device, got cpu; move the model there first");
}

}  // namespace
}  // namespace gs
