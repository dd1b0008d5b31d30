# What Gradstone stands on. tools/setup.sh installs these packages on Debian.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX) # oneDNN runs on it and is told to use one thread
find_package(fmt REQUIRED)
find_package(cxxopts REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(sentencepiece REQUIRED IMPORTED_TARGET sentencepiece)
pkg_check_modules(hdf5 REQUIRED IMPORTED_TARGET hdf5) # FindHDF5 would ask for the language C

# OpenBLAS, and oneDNN where there is one, are opened at run time: OpenBLAS chooses its kernels
# while it is loaded, and on new processors it has to be told which.
find_library(GS_OPENBLAS NAMES libopenblas.so.0 openblas)
if(NOT GS_OPENBLAS)
  message(FATAL_ERROR "OpenBLAS (libopenblas.so.0) is missing; run tools/setup.sh")
endif()
