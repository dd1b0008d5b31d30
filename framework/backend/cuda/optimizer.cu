#include "framework/backend/optimizer.h"

#include <cmath>
#include <utility>
#include <vector>

#include "framework/backend/cuda/block.cuh"
#include "framework/backend/cuda/tensor_table.cuh"
#include "framework/backend/step_numbers.h"
#include "framework/backend/store.h"

// Bound by memory: each array is read and written once, all parameters in a few launches.
namespace gs::backend {
namespace {

// What changes from step to step. Kernels read it from device memory, so that a recorded launch
// sees the numbers of the step in which it runs.
struct AdamNumbers {
  double learning_rate, correction1, correction2, gradient_scale;
};

__global__ void take_numbers_kernel(AdamNumbers* place, const double* step, double learning_rate) {
  *place = {step[kLearningRate] * learning_rate, step[kCorrection1], step[kCorrection2],
            step[kGradientScale]};
}

// The arithmetic of framework/backend/cpu/optimizer.cpp.
template <typename T>
struct Adam {
  const AdamNumbers* numbers;
  double beta1, beta2, epsilon;
  bool decoupled;

  __device__ bool moves() const { return numbers->gradient_scale - numbers->gradient_scale == 0; }
  struct Constants {
    T beta1, beta2, rest1, rest2, keep, added, rate, root_scale, epsilon, scale;
  };
  __device__ Constants constants(double decay) const {
    const AdamNumbers n = *numbers;
    return {.beta1 = static_cast<T>(beta1),
            .beta2 = static_cast<T>(beta2),
            .rest1 = static_cast<T>(1 - beta1),
            .rest2 = static_cast<T>(1 - beta2),
            .keep = static_cast<T>(decoupled ? 1 - n.learning_rate * decay : 1),
            .added = static_cast<T>(decoupled ? 0 : decay),
            .rate = static_cast<T>(n.learning_rate / n.correction1),
            .root_scale = static_cast<T>(1 / std::sqrt(n.correction2)),
            .epsilon = static_cast<T>(epsilon),
            .scale = static_cast<T>(n.gradient_scale)};
  }
  __device__ void operator()(T (&values)[4], const Constants& c) const {
    auto& [weight, first, second, gradient] = values;
    const T g = c.scale * gradient + c.added * weight;
    first = c.beta1 * first + c.rest1 * g;
    second = c.beta2 * second + c.rest2 * g * g;
    weight = c.keep * weight - c.rate * first / (std::sqrt(second) * c.root_scale + c.epsilon);
  }
};

template <typename T>
struct SgdConstants {
  T rate, decay, momentum, scale, ahead, along;
};

// With momentum there is a velocity between weight and gradient.
template <typename T, bool kMomentum>
struct Sgd {
  double learning_rate;
  SgdStep step;

  __device__ SgdConstants<T> constants(double decay) const {
    return {.rate = static_cast<T>(learning_rate),
            .decay = static_cast<T>(decay),
            .momentum = static_cast<T>(step.momentum),
            .scale = static_cast<T>(step.gradient_scale),
            .ahead = step.nesterov ? T(1) : T(0),
            .along = step.nesterov ? static_cast<T>(step.momentum) : T(1)};
  }
  __device__ void operator()(T (&values)[kMomentum ? 3 : 2], const SgdConstants<T>& c) const {
    T& weight = values[0];
    const T g = c.scale * values[kMomentum ? 2 : 1] + c.decay * weight;
    if constexpr (kMomentum) {
      T& velocity = values[1];
      velocity = c.momentum * velocity + g;
      weight -= c.rate * (c.ahead * g + c.along * velocity);
    } else {
      weight -= c.rate * g;
    }
  }
};

template <typename T>
struct MovingAverage {
  double known_decay;
  const double* numbers = nullptr;  // where defined, the second one counts

  __device__ double decay() const { return numbers == nullptr ? known_decay : numbers[1]; }
  __device__ bool moves() const { return decay() != 1; }
  __device__ T constants(double) const { return static_cast<T>(1 - decay()); }
  __device__ void operator()(T (&values)[2], T rest) const {
    values[0] += rest * (values[1] - values[0]);
  }
};

template <typename T, int kArrays>
TensorEntry<kArrays> entry_of(double decay, Array* const (&arrays)[kArrays]) {
  TensorEntry<kArrays> entry{.arrays = {}, .elements = arrays[0]->elements(), .decay = decay};
  for (int a = 0; a < kArrays; ++a) entry.arrays[a] = elements_of<T>(*arrays[a]);
  return entry;
}

// body(run) for the longest runs of neighbours that are alike.
template <typename Parameter, typename Alike, typename Body>
void for_each_run(std::span<Parameter> parameters, const Alike& alike, const Body& body) {
  for (size_t first = 0; first < parameters.size();) {
    size_t end = first + 1;
    while (end < parameters.size() && alike(parameters[first], parameters[end])) ++end;
    body(parameters.subspan(first, end - first));
    first = end;
  }
}

template <typename T>
void adam_run(Cuda device, std::span<AdamParameter> run, const AdamStep& step) {
  std::vector<TensorEntry<4>> entries;
  for (AdamParameter& p : run) {
    entries.push_back(
        entry_of<T, 4>(p.decay, {&p.weight, &p.first_moment, &p.second_moment, &p.gradient}));
  }
  const Memory memory(Device::cuda(device.index), sizeof(AdamNumbers));
  if (step.numbers.defined()) {
    launch("adam", device, {dim3(1), dim3(1)}, take_numbers_kernel,
           static_cast<AdamNumbers*>(memory.data()), step.numbers.data<double>(),
           run[0].learning_rate);
  } else {
    const AdamNumbers numbers{run[0].learning_rate, step.correction1, step.correction2,
                              step.gradient_scale};
    backend::store(device, memory.data(), &numbers, sizeof numbers);
  }
  step_tensors<T, 3, 4>("adam", device, entries,
                        Adam<Compute<T>>{static_cast<const AdamNumbers*>(memory.data()), step.beta1,
                                         step.beta2, step.epsilon, step.decoupled});
}

template <typename T>
void sgd_run(Cuda device, std::span<SgdParameter> run, const SgdStep& step) {
  std::vector<TensorEntry<2>> plain;
  std::vector<TensorEntry<3>> with_velocity;
  for (SgdParameter& p : run) {
    if (p.velocity.defined()) {
      with_velocity.push_back(entry_of<T, 3>(p.decay, {&p.weight, &p.velocity, &p.gradient}));
    } else {
      plain.push_back(entry_of<T, 2>(p.decay, {&p.weight, &p.gradient}));
    }
  }
  const double rate = run[0].learning_rate;
  step_tensors<T, 1, 2>("sgd", device, plain, Sgd<Compute<T>, false>{rate, step});
  step_tensors<T, 2, 3>("sgd", device, with_velocity, Sgd<Compute<T>, true>{rate, step});
}

template <typename T>
void moving_average_run(Cuda device, std::span<MovingAverageParameter> run,
                        const MovingAverage<Compute<T>>& step) {
  std::vector<TensorEntry<2>> entries;
  for (MovingAverageParameter& p : run)
    entries.push_back(entry_of<T, 2>(0, {&p.average, &p.weight}));
  step_tensors<T, 1, 2>("moving_average", device, entries, step);
}

void moving_averages(Cuda device, std::span<MovingAverageParameter> parameters, double decay,
                     const double* numbers) {
  const auto alike = [](const MovingAverageParameter& a, const MovingAverageParameter& b) {
    return a.average.dtype() == b.average.dtype();
  };
  for_each_run(parameters, alike, [&](std::span<MovingAverageParameter> run) {
    dispatch_element("moving_average", run[0].average.dtype(), [&](auto zero) {
      using T = decltype(zero);
      moving_average_run<T>(device, run, MovingAverage<Compute<T>>{decay, numbers});
    });
  });
}

// Each block leaves the sum of its piece; nothing depends on which one is first.
template <typename T>
__global__ void squares_kernel(double* sums, TensorTable<1> table) {
  __shared__ double scratch[kWarp];
  const int index = table.entry_of(blockIdx.x);
  const int64_t begin = (blockIdx.x - table.entries[index].first_block) * table.kPiece;
  const int64_t end = std::min(table.entries[index].elements, begin + table.kPiece);
  const T* const x = static_cast<const T*>(table.entries[index].arrays[0]);
  constexpr int kSize = kPackSize<T>;
  double sum = 0;
  for (int64_t i = begin + threadIdx.x * kSize; i < end; i += blockDim.x * kSize) {
    if (i + kSize <= end) {
      const Pack<T, kSize> pack = load_pack<T, kSize>(x + i);
#pragma unroll
      for (int k = 0; k < kSize; ++k) {
        const double value = load(pack.values + k);
        sum += value * value;
      }
    } else {
      for (int64_t k = i; k < end; ++k) {
        const double value = load(x + k);
        sum += value * value;
      }
    }
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// In one block.
__global__ void add_sums_kernel(double* total, const double* sums, int64_t count) {
  __shared__ double scratch[kWarp];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += sums[i];
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) *total = sum;
}

// Tables of one type, and where the sums of their blocks go.
void start_squares(Cuda device, DType dtype, std::span<const TensorEntry<1>> entries,
                   double*& sums) {
  dispatch_element("sum_of_squares", dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each_table(entries, [&](const TensorTable<1>& table, int64_t blocks) {
      launch("sum_of_squares", device, {dim3(static_cast<unsigned>(blocks)), dim3(kThreads)},
             squares_kernel<T>, sums, table);
      sums += blocks;
    });
  });
}

}  // namespace

void adam(Cuda device, std::span<AdamParameter> parameters, const AdamStep& step) {
  const auto alike = [](const AdamParameter& a, const AdamParameter& b) {
    return a.weight.dtype() == b.weight.dtype() && a.learning_rate == b.learning_rate;
  };
  for_each_run(parameters, alike, [&](std::span<AdamParameter> run) {
    dispatch_element("adam", run[0].weight.dtype(),
                     [&](auto zero) { adam_run<decltype(zero)>(device, run, step); });
  });
}

void sgd(Cuda device, std::span<SgdParameter> parameters, const SgdStep& step) {
  const auto alike = [](const SgdParameter& a, const SgdParameter& b) {
    return a.weight.dtype() == b.weight.dtype() && a.learning_rate == b.learning_rate;
  };
  for_each_run(parameters, alike, [&](std::span<SgdParameter> run) {
    dispatch_element("sgd", run[0].weight.dtype(),
                     [&](auto zero) { sgd_run<decltype(zero)>(device, run, step); });
  });
}

void moving_average(Cuda device, std::span<MovingAverageParameter> parameters, double decay) {
  moving_averages(device, parameters, decay, nullptr);
}

void moving_average(Cuda device, std::span<MovingAverageParameter> parameters,
                    const Array& numbers) {
  moving_averages(device, parameters, 0, numbers.data<double>());
}

Array sum_of_squares(Cuda device, std::span<const Array> arrays) {
  int64_t blocks = 0;
  for (const Array& array : arrays)
    blocks += (array.elements() + TensorTable<1>::kPiece - 1) / TensorTable<1>::kPiece;
  const Memory memory(Device::cuda(device.index), blocks * int64_t{sizeof(double)});
  auto* const sums = static_cast<double*>(memory.data());
  double* place = sums;
  const auto alike = [](const Array& a, const Array& b) { return a.dtype() == b.dtype(); };
  for_each_run(arrays, alike, [&](std::span<const Array> run) {
    std::vector<TensorEntry<1>> entries;
    for (const Array& array : run)
      entries.push_back({.arrays = {const_cast<void*>(array.raw())}, .elements = array.elements()});
    start_squares(device, run[0].dtype(), entries, place);
  });
  Array total = Array::empty({}, kFloat64, Device::cuda(device.index));
  launch("sum_of_squares", device, {dim3(1), dim3(kThreads)}, add_sums_kernel, total.data<double>(),
         static_cast<const double*>(sums), blocks);
  return total;
}

}  // namespace gs::backend
