// Products, and what is made of them: attention, and the loss of the output layer.
#include <cmath>
#include <type_traits>

#include "framework/backend/attention.h"
#include "framework/backend/cross_entropy.h"
#include "framework/backend/gemm.h"
#include "framework/backend/linear.h"
#include "framework/backend/linear_cross_entropy.h"
#include "tools/benchmark/device_rates.h"

namespace gs {
namespace {

// Of three matrices, in a type of that many bytes.
double product_bytes(int64_t m, int64_t n, int64_t k, int64_t size) {
  return static_cast<double>((m * k + k * n + m * n) * size);
}

double product_operations(int64_t m, int64_t n, int64_t k) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

// A layer over tokens: y = x weight^T (NT), dx = dy weight (NN), dweight = dy^T x (TN).
struct Form {
  const char* name;
  bool transpose_a, transpose_b;
};
constexpr Form kForms[] = {{"NT", false, true}, {"NN", false, false}, {"TN", true, false}};

template <typename T>
void product(DeviceRates& rates, const Form& form, int64_t m, int64_t n, int64_t k,
             const char* type, double limit) {
  const backend::GemmSizes sizes{.m = m,
                                 .n = n,
                                 .k = k,
                                 .transpose_a = form.transpose_a,
                                 .transpose_b = form.transpose_b,
                                 .a_stride = form.transpose_a ? m : k,
                                 .b_stride = form.transpose_b ? k : n,
                                 .c_stride = n};
  rates.measure(fmt::format("gemm {}", form.name), fmt::format("{} x {} x {}", m, n, k), type,
                {product_bytes(m, n, k, sizeof(T)), product_operations(m, n, k), limit},
                [&]() -> std::function<void()> {
                  const Array a = rates.random({m * k}, dtype_of<T>),
                              b = rates.random({k * n}, dtype_of<T>);
                  Array c = rates.empty({m * n}, dtype_of<T>);
                  return [=, device = rates.device()]() mutable {
                    on_device(device, [&](auto on) {
                      if constexpr (std::is_same_v<T, float> || std::is_same_v<decltype(on), Cuda>)
                        backend::gemm(on, sizes, a.data<T>(), b.data<T>(), c.data<T>());
                    });
                  };
                });
}

// float32, and on CUDA devices TF32 and bfloat16, with the fastest algorithm of each.
void product_in_all_types(DeviceRates& rates, const Form& form, int64_t m, int64_t n, int64_t k) {
  product<float>(rates, form, m, n, k, "float32", rates.limits().float32);
  if (rates.device().kind != Device::Kind::kCuda) return;
  backend::use_tf32(true);
  product<float>(rates, form, m, n, k, "tf32", rates.limits().tf32);
  backend::use_tf32(false);
  product<BFloat16>(rates, form, m, n, k, "bfloat16", rates.limits().bfloat16);
}

double limit_of(const DeviceRates& rates, DType dtype) {
  return dtype == kBFloat16 ? rates.limits().bfloat16 : rates.limits().float32;
}

void linear_layer(DeviceRates& rates, DType dtype, int64_t in, int64_t out, bool finish) {
  const int64_t n = rates.sizes().tokens;
  rates.measure(
      finish ? "linear, relu, dropout" : "linear", fmt::format("{} x {} x {}", n, out, in),
      name_of(dtype),
      {product_bytes(n, out, in, size_of(dtype)), product_operations(n, out, in),
       limit_of(rates, dtype)},
      [&]() -> std::function<void()> {
        const Array x = rates.random({n, in}, dtype), weight = rates.random({out, in}, dtype),
                    bias = rates.random({out}, dtype);
        backend::LinearFinish last;
        if (finish) last = {true, backend::DropoutMask::of(0.1, {1, 2})};
        return [=, y = rates.empty({n, out}, dtype)]() mutable {
          on_device(x.device(), [&](auto on) { backend::linear(on, y, x, weight, bias, last); });
        };
      });
}

// Sentences of one length, packed; heads are 64 wide or less.
struct Attention {
  Attention(const DeviceRates& rates, DType dtype, int64_t rows, int64_t width, int64_t length,
            bool causal) {
    for (Array* array : {&inputs.query, &inputs.key, &inputs.value, &dy})
      *array = rates.random({rows, width}, dtype);
    for (Array* array : {&results.output, &gradients.dquery, &gradients.dkey, &gradients.dvalue})
      *array = rates.empty({rows, width}, dtype);
    plan.heads = std::max<int64_t>(1, width / 64);
    plan.width = plan.value_width = width / plan.heads;
    plan.causal = causal;
    plan.scale = 1 / std::sqrt(static_cast<double>(plan.width));
    for (int64_t at = 0; at < rows; at += length) {
      plan.sequences.push_back({at, length, at, length, plan.weights, length});
      plan.weights += plan.heads * length * length;
    }
    on_device(rates.device(), [&](auto on) {
      if (backend::attention_keeps_weights(on)) {
        results.weights = rates.empty({plan.weights}, dtype);
      } else {
        results.statistics = rates.empty({rows, plan.heads * 2});
      }
      backend::place_sequences(on, plan);
    });
    forward();
  }

  void forward() {
    on_device(dy.device(), [&](auto on) { backend::attention(on, results, inputs, plan); });
  }
  void backward() {
    on_device(dy.device(), [&](auto on) {
      backend::attention_backward(on, gradients, dy, Array(), inputs, results, plan);
    });
  }

  backend::AttentionPlan plan;
  backend::AttentionInputs inputs;
  backend::AttentionResults results;
  backend::AttentionGradients gradients;
  Array dy;
};

void attention(DeviceRates& rates, DType dtype, int64_t width, int64_t length, bool causal,
               bool backward) {
  const int64_t count = std::max<int64_t>(1, rates.sizes().tokens / length), n = count * length;
  const double products = 4.0 * static_cast<double>(n * length * width) / (causal ? 2 : 1);
  rates.measure(
      fmt::format("attention{}{}", causal ? ", causal" : "", backward ? ", backward" : ""),
      fmt::format("{} x {} tokens, width {}", count, length, width), name_of(dtype),
      {static_cast<double>((backward ? 8 : 4) * n * width * size_of(dtype)),
       (backward ? 2.5 : 1) * products, limit_of(rates, dtype)},
      [&]() -> std::function<void()> {
        return [it = Attention(rates, dtype, n, width, length, causal), backward]() mutable {
          backward ? it.backward() : it.forward();
        };
      });
}

void cross_entropy(DeviceRates& rates, DType dtype) {
  const int64_t n = std::min<int64_t>(rates.sizes().tokens, 8192), v = rates.sizes().vocabulary;
  rates.measure(
      "cross entropy, gradient", fmt::format("{} x {}", n, v), name_of(dtype),
      {static_cast<double>(2 * n * v * size_of(dtype)), 0, 0}, [&]() -> std::function<void()> {
        const Array logits = rates.random({n, v}, dtype), targets = rates.indices(n, v);
        return [=, dlogits = rates.empty({n, v}, dtype)]() mutable {
          on_device(logits.device(), [&](auto on) {
            backend::cross_entropy(on, dlogits, logits, targets, {.label_smoothing = 0.1});
          });
        };
      });
}

void linear_cross_entropy(DeviceRates& rates, DType dtype, int64_t width) {
  const int64_t n = rates.sizes().tokens, v = rates.sizes().vocabulary;
  rates.measure(
      "linear cross entropy, gradients", fmt::format("{} x {} x {}", n, v, width), name_of(dtype),
      {static_cast<double>(2 * (n + v) * width * size_of(dtype)),
       3 * product_operations(n, v, width), limit_of(rates, dtype)},
      [&]() -> std::function<void()> {
        const Array x = rates.random({n, width}, dtype), weight = rates.random({v, width}, dtype),
                    targets = rates.indices(n, v);
        backend::LinearCrossEntropyGradients gradients{rates.empty({n, width}, dtype),
                                                       rates.empty({v, width}, dtype), Array()};
        return [=]() mutable {
          on_device(x.device(), [&](auto on) {
            backend::linear_cross_entropy(on, gradients, x, weight, Array(), targets,
                                          {.label_smoothing = 0.1});
          });
        };
      });
}

}  // namespace

void rate_products(DeviceRates& rates) {
  backend::time_gemm_algorithms(true);
  const int64_t n = rates.sizes().tokens;
  for (const int64_t width : rates.sizes().widths) {
    for (const auto& [in, out] : {std::pair{width, width},
                                  {width, 4 * width},
                                  {4 * width, width},
                                  {width, rates.sizes().vocabulary}}) {
      product_in_all_types(rates, kForms[0], n, out, in);
      product_in_all_types(rates, kForms[1], n, in, out);
      product_in_all_types(rates, kForms[2], out, in, n);
    }
    for (const DType dtype : rates.types()) {
      linear_layer(rates, dtype, width, width, false);
      linear_layer(rates, dtype, width, 4 * width, true);
    }
  }
  backend::time_gemm_algorithms(false);
}

void rate_attention(DeviceRates& rates) {
  for (const int64_t width : rates.sizes().widths) {
    for (const DType dtype : rates.types()) {
      for (const int64_t length : {32, 128, 512}) {
        for (const bool causal : {false, true}) {
          attention(rates, dtype, width, length, causal, false);
          attention(rates, dtype, width, length, causal, true);
        }
      }
    }
  }
}

void rate_losses(DeviceRates& rates) {
  for (const DType dtype : rates.types()) {
    cross_entropy(rates, dtype);
    for (const int64_t width : rates.sizes().widths) linear_cross_entropy(rates, dtype, width);
  }
}

}  // namespace gs
