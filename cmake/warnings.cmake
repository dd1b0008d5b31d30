# Flags of our own targets. Not fast-math: NaN and infinity keep their meaning; only errno and
# floating-point traps, which nothing here reads, are given up so that loops vectorise.
# -Wrestrict sees overlaps that are none in g++ 12's std::string (GCC bug 105651).
function(gs_compile_options target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Werror -Wno-restrict -fno-math-errno -fno-trapping-math>
    $<$<CONFIG:Release>:-O3>)
  if(GS_SANITIZE)
    set(sanitizers address,undefined)
    if(GS_SANITIZE STREQUAL "THREAD")
      set(sanitizers thread)
    endif()
    # Instrumented code brings false warnings (the compiler's manual says so): other builds judge.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-w -O1 -g1
      -fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer>)
    target_link_options(${target} PRIVATE -fsanitize=${sanitizers})
  endif()
endfunction()

# Tests are compiled often and run once: -O1 compiles in half the time, and spares false warnings
# of g++ 12 about vectors of known size; that about smart pointers in aggregates stays.
function(gs_test_options target)
  gs_compile_options(${target})
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1> -Wno-maybe-uninitialized)
  if(GS_SANITIZE STREQUAL "ON")
    # Half of the time of compiling. The library keeps all checks; of these three the address sanitizer
    # finds most in tests, but no wrong cast to a derived class.
    target_compile_options(${target} PRIVATE -O0 -fno-sanitize=null,vptr,object-size)
  endif()
endfunction()
