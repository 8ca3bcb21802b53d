# Installs the libraries, the headers, the command, a CMake package and a pkg-config file.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/lilac)
install(TARGETS lilac_static lilac_shared EXPORT lilac-targets)
install(FILES include/lilac.h TYPE INCLUDE)
install(DIRECTORY include/lilac TYPE INCLUDE)
install(EXPORT lilac-targets NAMESPACE lilac:: DESTINATION ${package_folder})
configure_package_config_file(cmake/lilac-config.cmake.in lilac-config.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(lilac-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lilac-config.cmake
              ${PROJECT_BINARY_DIR}/lilac-config-version.cmake DESTINATION ${package_folder})
configure_file(cmake/lilac.pc.in lilac.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lilac.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
