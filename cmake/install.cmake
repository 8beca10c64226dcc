# make install: libmase, headers, a CMake package, a pkg-config file and ch.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS mase EXPORT mase-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS ch RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/src/mase DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "cli" EXCLUDE)
install(EXPORT mase-targets NAMESPACE mase:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mase)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/mase-config.cmake.in
  ${CMAKE_BINARY_DIR}/mase-config.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mase)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/mase-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/mase-config.cmake ${CMAKE_BINARY_DIR}/mase-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mase)
# The prefix may be chosen at installation, so the file says where it is from itself.
file(RELATIVE_PATH MASE_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(${CMAKE_SOURCE_DIR}/cmake/mase.pc.in ${CMAKE_BINARY_DIR}/mase.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/mase.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set_target_properties(ch mase PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
