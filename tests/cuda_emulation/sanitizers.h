// What the emulation tells the sanitizers, and nothing in builds without them. The executor (all
// that includes fibers.h) is compiled without -fsanitize=thread, so that only kernels are watched;
// such builds define GS_THREAD_SANITIZER.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define GS_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GS_ADDRESS_SANITIZER
#endif
#endif

#ifdef GS_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef GS_THREAD_SANITIZER
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateBenignRaceSized(const char* file, int line, const volatile void* memory, size_t size,
                             const char* description);
}
#endif

namespace gs::cuda_emulation {

#ifdef GS_ADDRESS_SANITIZER
constexpr bool kAddressSanitizer = true;
inline void close_memory(void* memory, size_t bytes) { __asan_poison_memory_region(memory, bytes); }
inline void open_memory(void* memory, size_t bytes) {
  __asan_unpoison_memory_region(memory, bytes);
}
inline void before_switch(void** own_frames, const void* stack, size_t bytes) {
  __sanitizer_start_switch_fiber(own_frames, stack, bytes);
}
inline void after_switch(void* own_frames, const void** left_stack, size_t* left_bytes) {
  __sanitizer_finish_switch_fiber(own_frames, left_stack, left_bytes);
}
#else
constexpr bool kAddressSanitizer = false;
inline void close_memory(void*, size_t) {}
inline void open_memory(void*, size_t) {}
inline void before_switch(void**, const void*, size_t) {}
inline void after_switch(void*, const void**, size_t*) {}
#endif

#ifdef GS_THREAD_SANITIZER
constexpr bool kThreadSanitizer = true;
inline void* current_context() { return __tsan_get_current_fiber(); }
inline void* new_context() { return __tsan_create_fiber(0); }
inline void enter_context(void* context) { __tsan_switch_to_fiber(context, 1); }
inline void order_after(void* address) { __tsan_acquire(address); }
inline void order_before(void* address) { __tsan_release(address); }
inline void ignore_races(void* memory, size_t bytes) {
  AnnotateBenignRaceSized(__FILE__, __LINE__, memory, bytes, "shared memory of another block");
}
#else
constexpr bool kThreadSanitizer = false;
inline void* current_context() { return nullptr; }
inline void* new_context() { return nullptr; }
inline void enter_context(void*) {}
inline void order_after(void*) {}
inline void order_before(void*) {}
inline void ignore_races(void*, size_t) {}
#endif

}  // namespace gs::cuda_emulation
