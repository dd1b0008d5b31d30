# Builds a kernel as on a machine without ccache. The tests themselves are built with ccache where it
# is installed, so that a mistake in how nvcc is called without it would meet a user first.
file(REMOVE_RECURSE ${work})
unset(ENV{CMAKE_CUDA_COMPILER_LAUNCHER})
execute_process(COMMAND ${CMAKE_COMMAND} -G ${generator} -S ${source} -B ${work} -D CMAKE_CXX_COMPILER=${compiler}
                        -D GS_WITH_CUDA=ON
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${work}
                        --target framework/CMakeFiles/gradstone.dir/backend/cuda/scale.cu.o
                COMMAND_ERROR_IS_FATAL ANY)
