# Installs into a fresh prefix, builds the project beside this file against it, and runs that.
set(work ${build}/tests/install)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(status)
    message(FATAL_ERROR "${ARGV}\ngave ${status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/build -G ${generator}
    -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_CXX_COMPILER_LAUNCHER=${launcher}
    -D CMAKE_BUILD_TYPE=${build_type} -D CMAKE_PREFIX_PATH=${work}/prefix -D version=${version})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/outside)
if(NOT output STREQUAL "gradstone ${version}: [2, 4] of 3, 1 option\n")
  message(FATAL_ERROR "the program printed: ${output}")
endif()
