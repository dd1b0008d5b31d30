# Where the CUDA backend comes from: GS_CUDA is NVCC, EMULATED or empty. EMULATED compiles the same
# sources as C++ for tests/cuda_emulation, which runs kernels on the CPU; it needs the toolkit's
# headers alone. EMULATED_IF_FOUND leaves the backend out where they are missing.
set(GS_CUDA "")
if(GS_WITH_CUDA MATCHES "^EMULATED(_IF_FOUND)?$")
  find_path(GS_CUDA_INCLUDE cublasLt.h HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES include)
  if(GS_CUDA_INCLUDE)
    set(GS_CUDA EMULATED)
  elseif(GS_WITH_CUDA STREQUAL "EMULATED")
    message(FATAL_ERROR "GS_WITH_CUDA: EMULATED needs the CUDA Toolkit's headers, got none; set CUDA_HOME or use OFF")
  else()
    message(NOTICE "CUDA: the CUDA Toolkit's headers are missing, so its emulation is left out; set CUDA_HOME")
  endif()
elseif(GS_WITH_CUDA STREQUAL "ON" OR GS_WITH_CUDA STREQUAL "AUTO")
  # nvcc often lies where no PATH leads.
  if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(GS_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
    if(GS_NVCC)
      set(ENV{CUDACXX} ${GS_NVCC})
    endif()
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    # Machine code for compute capability 9.0, and PTX that drivers compile for all others from 8.0 on.
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80-virtual 90-real)
    endif()
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake does not know it of nvcc before 3.26
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_EXTENSIONS OFF)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    find_package(CUDAToolkit REQUIRED)
    if(NOT TARGET CUDA::cublasLt)
      message(FATAL_ERROR "GS_WITH_CUDA: the CUDA Toolkit of ${CUDAToolkit_BIN_DIR} lacks cuBLAS; "
                          "install libcublas-dev of its version, or use OFF")
    endif()
    set(GS_CUDA NVCC)
  elseif(GS_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "GS_WITH_CUDA: ON needs an nvcc that works, got none; put it on PATH, set CUDACXX, or use OFF")
  else()
    message(STATUS "CUDA: no nvcc, so only the CPU is built for; put it on PATH or set CUDACXX")
  endif()
elseif(NOT GS_WITH_CUDA STREQUAL "OFF")
  message(FATAL_ERROR "GS_WITH_CUDA: must be AUTO, ON, OFF, EMULATED or EMULATED_IF_FOUND, got ${GS_WITH_CUDA}")
endif()

# Compiles kernels as C++ for the emulation; to be called in the folder of their target.
function(gs_emulate_cuda)
  set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS
    "-x;c++;-include;${PROJECT_SOURCE_DIR}/tests/cuda_emulation/emulation.h;-Wno-unknown-pragmas")
endfunction()

# Adds framework/backend/cuda to the library.
function(gs_add_cuda_backend target)
  file(GLOB kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/framework/backend/cuda/*.cu)
  target_sources(${target} PRIVATE ${kernels})
  target_compile_definitions(${target} PUBLIC GS_WITH_CUDA)
  if(GS_CUDA STREQUAL "EMULATED")
    set(folder ${PROJECT_SOURCE_DIR}/tests/cuda_emulation)
    file(GLOB emulation CONFIGURE_DEPENDS ${folder}/*.cpp)
    target_sources(${target} PRIVATE ${emulation})
    target_include_directories(${target} SYSTEM PRIVATE ${GS_CUDA_INCLUDE})
    gs_emulate_cuda(${kernels})
    if(GS_SANITIZE STREQUAL "THREAD")
      # The executor tells the sanitizer which thread runs; it must not be taken for one.
      set(executor ${folder}/executor.cpp ${folder}/fibers.cpp ${folder}/block.cpp ${folder}/warp.cpp
                   ${folder}/async_copy.cpp)
      set_source_files_properties(${executor} PROPERTIES COMPILE_OPTIONS "-fno-sanitize=thread"
                                  COMPILE_DEFINITIONS GS_THREAD_SANITIZER)
    endif()
  else()
    # Warnings are errors. cudafe turns fmt's consteval into what g++ refuses.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:
      --expt-relaxed-constexpr -Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Werror,-Wno-restrict
      -DFMT_CONSTEVAL= -DFMT_USE_CONSTEXPR=1>)
    # What ptxas says of registers and spills stays beside each object for tools/check_spills.py.
    # Not in quotes: where there is no launcher, no empty argument may stand for it.
    set(launcher ${PROJECT_SOURCE_DIR}/cmake/keep_ptxas_report.sh ${CMAKE_CUDA_COMPILER_LAUNCHER})
    set_target_properties(${target} PROPERTIES
      CUDA_RUNTIME_LIBRARY Static CUDA_COMPILER_LAUNCHER "${launcher}")
    set_source_files_properties(${PROJECT_SOURCE_DIR}/framework/backend/cuda/cublas_lt.cpp PROPERTIES
      COMPILE_DEFINITIONS "GS_CUBLAS_FOLDER=\"${CUDAToolkit_LIBRARY_DIR}\"")
    target_link_libraries(${target} PRIVATE CUDA::cudart_static)
  endif()
endfunction()
