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

// A kernel over (tokens, width) that reads or writes that many such arrays.
struct TokenRows {
  TokenRows(DeviceRates& to, int64_t of_width, DType type)
      : rates(to), n(to.sizes().tokens), width(of_width), dtype(type), shape{n, of_width} {}

  template <typename Prepare>
  void measure(const char* kernel, int64_t arrays, const Prepare& prepare) const {
    rates.measure(kernel, fmt::format("{} x {}", n, width), name_of(dtype),
                  {static_cast<double>(arrays * size_of(dtype) * n * width), 0, 0},
                  [&]() -> std::function<void()> { return prepare(); });
  }
  Array random() const { return rates.random(shape, dtype); }
  Array empty() const { return rates.empty(shape, dtype); }

  DeviceRates& rates;
  int64_t n, width;
  DType dtype;
  Shape shape;
};

void for_all_rows(DeviceRates& rates, void (*body)(const TokenRows&)) {
  for (const int64_t width : rates.sizes().widths)
    for (const DType dtype : rates.types()) body(TokenRows(rates, width, dtype));
}

const backend::DropoutMask kDropout = backend::DropoutMask::of(0.1, {1, 2});

void elements(const TokenRows& rows) {
  rows.measure("scale", 2, [&] {
    return [x = rows.random(), y = rows.empty()]() mutable {
      on_device(x.device(), [&](auto on) { backend::scale(on, y, x, 2); });
    };
  });
  rows.measure("accumulate", 3, [&] {
    return [x = rows.random(), y = rows.random()]() mutable {
      on_device(x.device(), [&](auto on) { backend::accumulate(on, y, x); });
    };
  });
  rows.measure("dropout", 2, [&] {
    return [x = rows.random(), y = rows.empty()]() mutable {
      on_device(x.device(), [&](auto on) { backend::dropout(on, y, x, kDropout); });
    };
  });
  rows.measure("x + dropout(branch)", 3, [&] {
    return [x = rows.random(), branch = rows.random(), y = rows.empty()]() mutable {
      on_device(x.device(), [&](auto on) { backend::residual(on, y, x, branch, kDropout); });
    };
  });
  rows.measure("permute", 2, [&] {
    return [x = rows.random(), y = rows.rates.empty({rows.width, rows.n}, rows.dtype)]() mutable {
      on_device(x.device(), [&](auto on) { backend::permute(on, y, x, std::array{1, 0}); });
    };
  });
}

struct Norm {
  explicit Norm(const TokenRows& rows)
      : x(rows.random()),
        branch(rows.random()),
        dy(rows.random()),
        weight(rows.rates.random({rows.width})),
        bias(rows.rates.random({rows.width})),
        y(rows.empty()),
        sum(rows.empty()),
        statistics(rows.rates.empty({rows.n, 2})) {}

  void forward() {
    on_device(x.device(),
              [&](auto on) { backend::layer_norm(on, y, statistics, x, weight, bias, {}); });
  }

  Array x, branch, dy, weight, bias, y, sum, statistics;
};

void norms(const TokenRows& rows) {
  rows.measure("layer norm", 2, [&] { return [norm = Norm(rows)]() mutable { norm.forward(); }; });
  rows.measure("layer norm of x + dropout(branch)", 4, [&] {
    return [norm = Norm(rows)]() mutable {
      on_device(norm.x.device(), [&](auto on) {
        backend::residual_layer_norm(on, norm.y, norm.sum, norm.statistics, norm.x, norm.branch,
                                     kDropout, norm.weight, norm.bias, {});
      });
    };
  });
  for (const bool residual : {false, true}) {
    rows.measure(residual ? "layer norm of x + dropout(branch), backward" : "layer norm, backward",
                 residual ? 4 : 3, [&] {
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
  const Rows form{rows.n, rows.width, 1};
  rows.measure("softmax", 2, [&] {
    return [x = rows.random(), y = rows.empty(), form]() mutable {
      on_device(x.device(), [&](auto on) { backend::softmax(on, y, x, form); });
    };
  });
  rows.measure("softmax, backward", 3, [&] {
    return [y = rows.random(), dy = rows.random(), dx = rows.empty(), form]() mutable {
      on_device(y.device(), [&](auto on) { backend::softmax_backward(on, dx, y, dy, form); });
    };
  });
}

}  // namespace

void rate_elements(DeviceRates& rates) { for_all_rows(rates, elements); }

void rate_rows(DeviceRates& rates) {
  for_all_rows(rates, norms);
  for_all_rows(rates, softmaxes);
}

void rate_embeddings(DeviceRates& rates) {
  for_all_rows(rates, [](const TokenRows& rows) {
    DeviceRates& to = rows.rates;
    const int64_t n = rows.n, v = to.sizes().vocabulary, size = size_of(rows.dtype);
    const Shape table{v, rows.width};
    const std::string shape = fmt::format("{} of {} x {}", n, v, rows.width);
    to.measure(
        "embedding", shape, name_of(rows.dtype),
        {static_cast<double>(2 * n * rows.width * size), 0, 0}, [&]() -> std::function<void()> {
          return [y = rows.empty(), weight = to.random(table, rows.dtype),
                  indices = to.indices(n, v)]() mutable {
            on_device(y.device(), [&](auto on) { backend::embedding(on, y, weight, indices); });
          };
        });
    to.measure("embedding, backward", shape, name_of(rows.dtype),
               {static_cast<double>((n + v) * rows.width * size), 0, 0},
               [&]() -> std::function<void()> {
                 return [dweight = to.empty(table, rows.dtype), dy = rows.random(),
                         indices = to.indices(n, v)]() mutable {
                   on_device(dy.device(), [&](auto on) {
                     backend::embedding_backward(on, dweight, dy, indices, std::nullopt);
                   });
                 };
               });
  });
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
