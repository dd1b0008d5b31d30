#include "framework/backend/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "framework/backend/cpu/data_or_null.h"
#include "framework/backend/step_numbers.h"
#include "framework/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/optimizer.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Bound by memory: each array is read and written once. All parameters share one parallel loop over
// blocks of a fixed size, so that results do not depend on the number of threads. The loops below
// become vectors of the instruction set that each is compiled for.
HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

// Kingma and Ba, 2015, algorithm 1 (epsilon outside of the corrected root); Loshchilov and Hutter,
// 2019, for the decoupled decay.
template <typename T>
void adam_range(T* HWY_RESTRICT weight, T* HWY_RESTRICT first, T* HWY_RESTRICT second,
                const T* HWY_RESTRICT gradient, double learning_rate, double decay,
                const AdamStep& step, int64_t begin, int64_t end) {
  const T beta1 = static_cast<T>(step.beta1), beta2 = static_cast<T>(step.beta2);
  const T rest1 = static_cast<T>(1 - step.beta1), rest2 = static_cast<T>(1 - step.beta2);
  const T keep = static_cast<T>(step.decoupled ? 1 - learning_rate * decay : 1);
  const T added = static_cast<T>(step.decoupled ? 0 : decay);
  const T rate = static_cast<T>(learning_rate / step.correction1);
  const T root_scale = static_cast<T>(1 / std::sqrt(step.correction2));
  const T epsilon = static_cast<T>(step.epsilon), scale = static_cast<T>(step.gradient_scale);
  for (int64_t i = begin; i < end; ++i) {
    const T g = scale * gradient[i] + added * weight[i];
    first[i] = beta1 * first[i] + rest1 * g;
    second[i] = beta2 * second[i] + rest2 * g * g;
    weight[i] = keep * weight[i] - rate * first[i] / (std::sqrt(second[i]) * root_scale + epsilon);
  }
}

template <typename T>
void sgd_range(T* HWY_RESTRICT weight, T* HWY_RESTRICT velocity, const T* HWY_RESTRICT gradient,
               double learning_rate, double added, const SgdStep& step, int64_t begin,
               int64_t end) {
  const T rate = static_cast<T>(learning_rate), decay = static_cast<T>(added);
  const T momentum = static_cast<T>(step.momentum), scale = static_cast<T>(step.gradient_scale);
  if (velocity == nullptr) {
    for (int64_t i = begin; i < end; ++i)
      weight[i] -= rate * (scale * gradient[i] + decay * weight[i]);
    return;
  }
  const T ahead = step.nesterov ? T(1) : T(0), along = step.nesterov ? momentum : T(1);
  for (int64_t i = begin; i < end; ++i) {
    const T g = scale * gradient[i] + decay * weight[i];
    velocity[i] = momentum * velocity[i] + g;
    weight[i] -= rate * (ahead * g + along * velocity[i]);
  }
}

template <typename T>
void moving_average_range(T* HWY_RESTRICT average, const T* HWY_RESTRICT weight, double decay,
                          int64_t begin, int64_t end) {
  const T rest = static_cast<T>(1 - decay);
  for (int64_t i = begin; i < end; ++i) average[i] += rest * (weight[i] - average[i]);
}

void adam_block(AdamParameter& p, const AdamStep& step, int64_t begin, int64_t end) {
  dispatch_floating("adam", p.weight.dtype(), [&](auto zero) {
    using T = decltype(zero);
    adam_range(p.weight.data<T>(), p.first_moment.data<T>(), p.second_moment.data<T>(),
               std::as_const(p.gradient).data<T>(), p.learning_rate, p.decay, step, begin, end);
  });
}

void sgd_block(SgdParameter& p, const SgdStep& step, int64_t begin, int64_t end) {
  dispatch_floating("sgd", p.weight.dtype(), [&](auto zero) {
    using T = decltype(zero);
    sgd_range(p.weight.data<T>(), data_or_null<T>(p.velocity), std::as_const(p.gradient).data<T>(),
              p.learning_rate, p.decay, step, begin, end);
  });
}

void moving_average_block(MovingAverageParameter& p, double decay, int64_t begin, int64_t end) {
  dispatch_floating("moving_average", p.average.dtype(), [&](auto zero) {
    using T = decltype(zero);
    moving_average_range(p.average.data<T>(), std::as_const(p.weight).data<T>(), decay, begin, end);
  });
}

double squares_block(const Array& x, int64_t begin, int64_t end) {
  return dispatch_floating("sum_of_squares", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* const in = x.data<T>();
    constexpr int64_t kLanes = 32;  // several vectors, whose additions do not wait for each other
    double lanes[kLanes] = {};
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        const double value = static_cast<double>(in[i + lane]);
        lanes[lane] += value * value;
      }
    }
    double sum = 0;
    for (; i < end; ++i) sum += static_cast<double>(in[i]) * static_cast<double>(in[i]);
    for (const double lane : lanes) sum += lane;
    return sum;
  });
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(adam_block);
HWY_EXPORT(sgd_block);
HWY_EXPORT(moving_average_block);
HWY_EXPORT(squares_block);

// Elements begin to end - 1 of one of several arrays, which are thought to lie end to end.
struct Block {
  size_t array;
  int64_t begin, end;
  int64_t place;  // of its beginning
};

// All elements of `count` arrays of sizes elements_of(i) in blocks.
template <typename Elements>
std::vector<Block> blocks_of(size_t count, const Elements& elements_of) {
  constexpr int64_t kElements = 1 << 15;
  std::vector<Block> blocks;
  int64_t place = 0;
  for (size_t array = 0; array < count; ++array) {
    const int64_t elements = elements_of(array);
    for (int64_t begin = 0; begin < elements; begin += kElements) {
      const int64_t end = std::min(elements, begin + kElements);
      blocks.push_back({array, begin, end, place});
      place += end - begin;
    }
  }
  return blocks;
}

// body(i) for each block i, the elements spread evenly over the threads.
template <typename Body>
void for_each_block(const std::vector<Block>& blocks, const Body& body) {
  constexpr int64_t kGrain = 1 << 14;
  if (blocks.empty()) return;
  const int64_t elements = blocks.back().place + blocks.back().end - blocks.back().begin;
  parallel_for(0, elements, kGrain, [&](int64_t first, int64_t last) {
    const auto before = [](const Block& block, int64_t place) { return block.place < place; };
    auto block = std::lower_bound(blocks.begin(), blocks.end(), first, before);
    for (; block != blocks.end() && block->place < last; ++block)
      body(static_cast<size_t>(block - blocks.begin()));
  });
}

// The step with what the numbers hold.
void adam_by_numbers(Cpu cpu, std::span<AdamParameter> parameters, AdamStep step) {
  const double* const numbers = std::as_const(step.numbers).data<double>();
  if (!std::isfinite(numbers[kGradientScale])) return;
  step.gradient_scale = numbers[kGradientScale];
  step.correction1 = numbers[kCorrection1];
  step.correction2 = numbers[kCorrection2];
  std::vector<AdamParameter> scaled(parameters.begin(), parameters.end());
  for (AdamParameter& parameter : scaled) parameter.learning_rate *= numbers[kLearningRate];
  step.numbers = {};
  adam(cpu, scaled, step);
}

}  // namespace

void adam(Cpu cpu, std::span<AdamParameter> parameters, const AdamStep& step) {
  if (step.numbers.defined()) return adam_by_numbers(cpu, parameters, step);
  const std::vector<Block> blocks =
      blocks_of(parameters.size(), [&](size_t i) { return parameters[i].weight.elements(); });
  for_each_block(blocks, [&](size_t i) {
    HWY_DYNAMIC_DISPATCH(adam_block)
    (parameters[blocks[i].array], step, blocks[i].begin, blocks[i].end);
  });
}

void sgd(Cpu, std::span<SgdParameter> parameters, const SgdStep& step) {
  const std::vector<Block> blocks =
      blocks_of(parameters.size(), [&](size_t i) { return parameters[i].weight.elements(); });
  for_each_block(blocks, [&](size_t i) {
    HWY_DYNAMIC_DISPATCH(sgd_block)
    (parameters[blocks[i].array], step, blocks[i].begin, blocks[i].end);
  });
}

void moving_average(Cpu, std::span<MovingAverageParameter> parameters, double decay) {
  const std::vector<Block> blocks =
      blocks_of(parameters.size(), [&](size_t i) { return parameters[i].average.elements(); });
  for_each_block(blocks, [&](size_t i) {
    HWY_DYNAMIC_DISPATCH(moving_average_block)
    (parameters[blocks[i].array], decay, blocks[i].begin, blocks[i].end);
  });
}

void moving_average(Cpu cpu, std::span<MovingAverageParameter> parameters, const Array& numbers) {
  const double decay = numbers.data<double>()[1];
  if (decay != 1) moving_average(cpu, parameters, decay);
}

Array sum_of_squares(Cpu, std::span<const Array> arrays) {
  const std::vector<Block> blocks =
      blocks_of(arrays.size(), [&](size_t i) { return arrays[i].elements(); });
  std::vector<double> sums(blocks.size());
  for_each_block(blocks, [&](size_t i) {
    sums[i] = HWY_DYNAMIC_DISPATCH(squares_block)(arrays[blocks[i].array], blocks[i].begin,
                                                  blocks[i].end);
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return Array::of<double>({}, {total});
}

}  // namespace gs::backend
#endif
