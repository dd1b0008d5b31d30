// Kernels bound by memory: element by element, row by row, embeddings, optimizers.
#include <array>

#include "framework/backend/copy.h"
#include "framework/backend/dropout.h"
#include "framework/backend/embedding.h"
#include "framework/backend/layer_norm.h"
#include "framework/backend/optimizer.h"
#include "framework/backend/permute.h"
#include "framework/backend/scale.h"
#include "framework/backend/softmax.h"
#include "tools/benchmark/device_rates.h"

namespace gs {
namespace {

// A kernel over (tokens, width) that moves that many bytes for each element.
struct TokenRows {
  TokenRows(DeviceRates& to, int64_t of_width)
      : rates(to), n(to.sizes().tokens), width(of_width), shape{n, of_width} {}

  template <typename Prepare>
  void measure(const char* kernel, int64_t bytes, const Prepare& prepare,
               const char* type = "float32") const {
    rates.measure(kernel, fmt::format("{} x {}", n, width), type,
                  {static_cast<double>(bytes * n * width), 0, 0},
                  [&]() -> std::function<void()> { return prepare(); });
  }

  DeviceRates& rates;
  int64_t n, width;
  Shape shape;
};

const backend::DropoutMask kDropout = backend::DropoutMask::of(0.1, {1, 2});

void elements(const TokenRows& rows, DType dtype) {
  DeviceRates& rates = rows.rates;
  const int64_t size = size_of(dtype);
  rows.measure(
      "scale", 2 * size,
      [&] {
        return [x = rates.random(rows.shape, dtype), y = rates.empty(rows.shape, dtype)]() mutable {
          on_device(x.device(), [&](auto on) { backend::scale(on, y, x, 2); });
        };
      },
      name_of(dtype));
  rows.measure(
      "accumulate", 3 * size,
      [&] {
        return
            [x = rates.random(rows.shape, dtype), y = rates.random(rows.shape, dtype)]() mutable {
              on_device(x.device(), [&](auto on) { backend::accumulate(on, y, x); });
            };
      },
      name_of(dtype));
}

void elements(const TokenRows& rows) {
  DeviceRates& rates = rows.rates;
  elements(rows, kFloat32);
  if (rates.device().kind == Device::Kind::kCuda) elements(rows, kBFloat16);
  rows.measure("dropout", 8, [&] {
    return [x = rates.random(rows.shape), y = rates.empty(rows.shape)]() mutable {
      on_device(x.device(), [&](auto on) { backend::dropout(on, y, x, kDropout); });
    };
  });
  rows.measure("x + dropout(branch)", 12, [&] {
    return [x = rates.random(rows.shape), branch = rates.random(rows.shape),
            y = rates.empty(rows.shape)]() mutable {
      on_device(x.device(), [&](auto on) { backend::residual(on, y, x, branch, kDropout); });
    };
  });
  rows.measure("permute", 8, [&] {
    return [x = rates.random(rows.shape), y = rates.empty({rows.width, rows.n})]() mutable {
      on_device(x.device(), [&](auto on) { backend::permute(on, y, x, std::array{1, 0}); });
    };
  });
}

struct Norm {
  explicit Norm(const TokenRows& rows)
      : x(rows.rates.random(rows.shape)),
        branch(rows.rates.random(rows.shape)),
        dy(rows.rates.random(rows.shape)),
        weight(rows.rates.random({rows.width})),
        bias(rows.rates.random({rows.width})),
        y(rows.rates.empty(rows.shape)),
        sum(rows.rates.empty(rows.shape)),
        statistics(rows.rates.empty({rows.n, 2})) {}

  void forward() {
    on_device(x.device(),
              [&](auto on) { backend::layer_norm(on, y, statistics, x, weight, bias, {}); });
  }

  Array x, branch, dy, weight, bias, y, sum, statistics;
};

void norms(const TokenRows& rows) {
  rows.measure("layer norm", 8, [&] { return [norm = Norm(rows)]() mutable { norm.forward(); }; });
  rows.measure("layer norm of x + dropout(branch)", 16, [&] {
    return [norm = Norm(rows)]() mutable {
      on_device(norm.x.device(), [&](auto on) {
        backend::residual_layer_norm(on, norm.y, norm.sum, norm.statistics, norm.x, norm.branch,
                                     kDropout, norm.weight, norm.bias, {});
      });
    };
  });
  for (const bool residual : {false, true}) {
    rows.measure(residual ? "layer norm of x + dropout(branch), backward" : "layer norm, backward",
                 residual ? 16 : 12, [&] {
                   Norm norm(rows);
                   norm.forward();
                   backend::NormGradients gradients{norm.y, Array::like(norm.weight),
                                                    Array::like(norm.bias),
                                                    residual ? norm.sum : Array()};
                   return [norm, gradients, residual]() mutable {
                     on_device(norm.x.device(), [&](auto on) {
                       backend::layer_norm_backward(on, gradients, norm.dy, norm.x, norm.statistics,
                                                    norm.weight, {},
                                                    residual ? kDropout : backend::DropoutMask{});
                     });
                   };
                 });
  }
}

void softmaxes(const TokenRows& rows) {
  DeviceRates& rates = rows.rates;
  const Rows form{rows.n, rows.width, 1};
  rows.measure("softmax", 8, [&] {
    return [x = rates.random(rows.shape), y = rates.empty(rows.shape), form]() mutable {
      on_device(x.device(), [&](auto on) { backend::softmax(on, y, x, form); });
    };
  });
  rows.measure("softmax, backward", 12, [&] {
    return [y = rates.random(rows.shape), dy = rates.random(rows.shape),
            dx = rates.empty(rows.shape), form]() mutable {
      on_device(y.device(), [&](auto on) { backend::softmax_backward(on, dx, y, dy, form); });
    };
  });
}

}  // namespace

void rate_elements(DeviceRates& rates) {
  for (const int64_t width : rates.sizes().widths) elements(TokenRows(rates, width));
}

void rate_rows(DeviceRates& rates) {
  for (const int64_t width : rates.sizes().widths) {
    norms(TokenRows(rates, width));
    softmaxes(TokenRows(rates, width));
  }
}

void rate_embeddings(DeviceRates& rates) {
  const int64_t n = rates.sizes().tokens, v = rates.sizes().vocabulary;
  for (const int64_t width : rates.sizes().widths) {
    const std::string shape = fmt::format("{} of {} x {}", n, v, width);
    rates.measure("embedding", shape, "float32", {static_cast<double>(2 * n * width * 4), 0, 0},
                  [&]() -> std::function<void()> {
                    return [y = rates.empty({n, width}), weight = rates.random({v, width}),
                            indices = rates.indices(n, v)]() mutable {
                      on_device(y.device(),
                                [&](auto on) { backend::embedding(on, y, weight, indices); });
                    };
                  });
    rates.measure("embedding, backward", shape, "float32",
                  {static_cast<double>((n + v) * width * 4), 0, 0}, [&]() -> std::function<void()> {
                    return [dweight = rates.empty({v, width}), dy = rates.random({n, width}),
                            indices = rates.indices(n, v)]() mutable {
                      on_device(dy.device(), [&](auto on) {
                        backend::embedding_backward(on, dweight, dy, indices, std::nullopt);
                      });
                    };
                  });
  }
}

// Over about as many parameters as a model of that width has in its table and six layers.
void rate_optimizers(DeviceRates& rates) {
  for (const int64_t width : rates.sizes().widths) {
    const int64_t count = (rates.sizes().vocabulary + 84 * width) * width;
    const std::string shape = fmt::format("{}", count);
    rates.measure("adam", shape, "float32", {static_cast<double>(7 * count * 4), 0, 0},
                  [&]() -> std::function<void()> {
                    backend::AdamParameter parameter{
                        .weight = rates.random({count}),
                        .first_moment = Array::zeros({count}, kFloat32, rates.device()),
                        .second_moment = Array::full({count}, 1, kFloat32, rates.device()),
                        .gradient = rates.random({count}),
                        .learning_rate = 1e-3,
                        .decay = 0.01};
                    return [parameter]() mutable {
                      on_device(parameter.weight.device(), [&](auto on) {
                        backend::adam(on, {&parameter, 1},
                                      {.beta1 = 0.9,
                                       .beta2 = 0.98,
                                       .epsilon = 1e-9,
                                       .decoupled = true,
                                       .correction1 = 0.5,
                                       .correction2 = 0.5});
                      });
                    };
                  });
    rates.measure("sum of squares", shape, "float32", {static_cast<double>(count * 4), 0, 0},
                  [&]() -> std::function<void()> {
                    return [x = rates.random({count})] {
                      on_device(x.device(), [&](auto on) { backend::sum_of_squares(on, {&x, 1}); });
                    };
                  });
  }
}

}  // namespace gs
