#include "framework/backend/cross_entropy.h"

#include <cmath>
#include <limits>

#include "framework/backend/cuda/rows.cuh"
#include "framework/backend/reduce.h"

// Bound by memory and the exponentials: a row is read for its sums, in one pass that corrects them
// whenever a larger element comes, and once more, from the cache, for the gradient.
namespace gs::backend {
namespace {

constexpr int64_t kNowhere = std::numeric_limits<int64_t>::max();
template <typename C>
constexpr C kLowest = -std::numeric_limits<C>::infinity();

// Of some elements of a row: the largest, NaN passed over, and where it is first; the sums of the
// elements less `shift`, which is the largest or 0 where that is -infinity, and of their
// exponentials.
template <typename C>
struct Partial {
  C top = kLowest<C>, powers = 0, offsets = 0, count = 0;
  int64_t first = kNowhere;

  __device__ static C shift_of(C top) { return top == kLowest<C> ? C{0} : top; }
  __device__ void move_to(C larger) {
    // Without a finite element the powers are 0, or NaN.
    if (top != kLowest<C>) powers *= std::exp(top - larger);
    offsets += count * (shift_of(top) - shift_of(larger));
    top = larger;
  }
  template <int kSize>
  __device__ void take(const C (&values)[kSize], int64_t place) {
    C largest = kLowest<C>;
#pragma unroll
    for (int j = 0; j < kSize; ++j) largest = values[j] > largest ? values[j] : largest;
    if (largest > top) {
      move_to(largest);
#pragma unroll
      for (int j = kSize - 1; j >= 0; --j) first = values[j] == largest ? place + j : first;
    }
    const C shift = shift_of(top);
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      const C offset = values[j] - shift;
      powers += std::exp(offset);
      offsets += offset;
    }
    count += C(kSize);
  }
  // All members of the line get what is true of all their elements.
  template <typename AnyLine>
  __device__ void join(const AnyLine& line) {
    const C largest = line.reduce(top, Larger{}, kLowest<C>);
    first = line.reduce(top == largest ? first : kNowhere, Smaller{}, kNowhere);
    if (largest > top) move_to(largest);
    powers = line.reduce(powers, Add{}, C{0});
    offsets = line.reduce(offsets, Add{}, C{0});
  }
};

template <typename T>
struct CrossEntropy {
  using C = Compute<T>;
  T* dlogits;
  const T* logits;
  const int32_t* targets;
  double* results;  // (rows, kCrossEntropySums)
  int64_t rows, classes, ignored;
  double smoothing;

  template <int kSize>
  __device__ void operator()(const Line<kSize>& line) const {
    const int64_t target = line.row < rows ? targets[line.row] : ignored;
    const bool counts = target != ignored;
    const C at_target = counts ? load(logits + line.start + target) : C{0};
    Partial<C> row;
    if (counts) {
      line.for_each([&](int64_t at, int64_t place) {
        const auto pack = load_pack<T, kSize>(logits + at);
        C values[kSize];
#pragma unroll
        for (int j = 0; j < kSize; ++j) values[j] = load(pack.values + j);
        row.take(values, place);
      });
    }
    row.join(line);
    line.synchronize();  // the target's logit is read, and may be written
    if (dlogits != nullptr) write_gradient(line, row, counts ? target : -1);
    if (line.leads)
      write_result(results + kCrossEntropySums * line.row, row, at_target, counts, target);
  }

  // The share of each exponential, less the target distribution; `target` is -1 in ignored rows.
  template <int kSize>
  __device__ void write_gradient(const Line<kSize>& line, const Partial<C>& row,
                                 int64_t target) const {
    const bool empty = target < 0 || row.powers == 0;
    const C shift = Partial<C>::shift_of(row.top), scale = 1 / row.powers;
    const C spread = static_cast<C>(smoothing / static_cast<double>(classes));
    const C confidence = static_cast<C>(1 - smoothing);
    line.for_each([&](int64_t at, int64_t place) {
      Pack<T, kSize> pack{};
      if (!empty) {
        pack = load_pack<T, kSize>(logits + at);
#pragma unroll
        for (int j = 0; j < kSize; ++j) {
          const C value = std::exp(load(pack.values + j) - shift) * scale - spread;
          store(pack.values + j, place + j == target ? value - confidence : value);
        }
      }
      store_pack(dlogits + at, pack);
    });
  }

  __device__ void write_result(double* result, const Partial<C>& row, C at_target, bool counts,
                               int64_t target) const {
    double loss = 0, nll = 0;
    if (counts && row.powers == 0) {  // no class is possible
      loss = nll = std::numeric_limits<double>::infinity();
    } else if (counts) {
      const double log_sum = std::log(static_cast<double>(row.powers));
      const double shift = static_cast<double>(Partial<C>::shift_of(row.top));
      loss = nll = log_sum - (static_cast<double>(at_target) - shift);
      const double mean = static_cast<double>(row.offsets) / static_cast<double>(classes);
      if (smoothing > 0) loss += smoothing * (log_sum - mean - nll);
    }
    const bool predicts = row.powers == row.powers;  // NaN predicts nothing
    result[kLossSum] = loss;
    result[kNegativeLogLikelihoodSum] = nll;
    result[kCountSum] = counts ? 1 : 0;
    result[kCorrectSum] = counts && predicts && row.first == target ? 1 : 0;
  }
};

}  // namespace

Array cross_entropy(Cuda device, Array& dlogits, const Array& logits, const Array& targets,
                    const CrossEntropyOptions& options) {
  const int64_t rows = targets.elements(), classes = logits.shape()[logits.rank() - 1];
  Array results = Array::empty(Shape{rows, kCrossEntropySums}, kFloat64, logits.device());
  Array sums = Array::empty(Shape{kCrossEntropySums}, kFloat64, logits.device());
  dispatch_element("cross_entropy", logits.dtype(), [&](auto zero) {
    using T = decltype(zero);
    // No target is as low as the one that stands for "none is ignored".
    const int64_t ignored = options.ignore_index.value_or(std::numeric_limits<int64_t>::min());
    run_rows<kPackSize<T>>(
        "cross_entropy", device, Pieces::whole(Rows{rows, classes, 1}),
        CrossEntropy<T>{dlogits.defined() ? elements_of<T>(dlogits) : nullptr,
                        elements_of<T>(logits), targets.data<int32_t>(), results.data<double>(),
                        rows, classes, ignored, options.label_smoothing});
  });
  sum(device, sums, results, Rows{1, rows, kCrossEntropySums});
  return sums;
}

}  // namespace gs::backend
