#include "framework/core/random.h"

#include "framework/core/error.h"

namespace gs {
namespace {

thread_local const RelativeStreams* relative = nullptr;

}  // namespace

RandomStream Generator::next() {
  const uint64_t number = state_.next_stream;
  if (relative != nullptr) {
    check(&relative->generator_ == this,
          "random: work that is recorded draws from another generator than the recorder's; use one "
          "generator");
    ++state_.next_stream;
    return {state_.seed, number - relative->before_.next_stream, relative->base_};
  }
  ++state_.next_stream;
  return {state_.seed, number};
}

RelativeStreams::RelativeStreams(Generator& generator, const uint64_t* base)
    : generator_(generator), before_(generator.state()), base_(base) {
  check(relative == nullptr, "random: streams are relative already; end that first");
  relative = this;
}

RelativeStreams::~RelativeStreams() {
  relative = nullptr;
  generator_.restore(before_);
}

Generator& default_generator() {
  static Generator generator;
  return generator;
}

void set_seed(uint64_t seed) { default_generator() = Generator(seed); }

}  // namespace gs
