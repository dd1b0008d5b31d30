# `cmake --install` gives a package that find_package(gradstone) finds.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

function(gs_install_package)
  set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/gradstone)
  install(TARGETS gradstone EXPORT gradstone-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT gradstone-targets NAMESPACE gradstone:: DESTINATION ${folder})
  # The kernels' own headers, below backend/cpu and backend/cuda, stay inside.
  foreach(source framework models datasets)
    if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${source})
      install(DIRECTORY ${PROJECT_SOURCE_DIR}/${source}
              DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gradstone
              FILES_MATCHING PATTERN *.h PATTERN cpu EXCLUDE PATTERN cuda EXCLUDE)
    endif()
  endforeach()
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/gradstone-config-version.cmake
                                   COMPATIBILITY SameMinorVersion)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/gradstone-config.cmake
                 ${PROJECT_BINARY_DIR}/gradstone-config.cmake @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/gradstone-config.cmake
                ${PROJECT_BINARY_DIR}/gradstone-config-version.cmake DESTINATION ${folder})
endfunction()
