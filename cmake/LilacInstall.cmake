# Installs the libraries, the headers, the command, a CMake package and a pkg-config file.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/lilac)
install(TARGETS lilac_static lilac_shared EXPORT lilac-targets)
install(FILES include/lilac.h TYPE INCLUDE)
install(DIRECTORY include/lilac TYPE INCLUDE)
# The explorer's page, if `make explorer` has built it.
install(FILES ${PROJECT_SOURCE_DIR}/build/wasm/explorer/explorer.html
        DESTINATION ${CMAKE_INSTALL_DATADIR}/lilac OPTIONAL)
install(EXPORT lilac-targets NAMESPACE lilac:: DESTINATION ${package_folder})
configure_package_config_file(cmake/lilac-config.cmake.in lilac-config.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(lilac-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lilac-config.cmake
              ${PROJECT_BINARY_DIR}/lilac-config-version.cmake DESTINATION ${package_folder})
# lilac.pc computes the prefix from its own location, so that `cmake --install --prefix` and moved
# installations work. Folders that are configured as absolute paths are used unchanged.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(lilac_pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH lilac_pc_up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" lilac_pc_up "${lilac_pc_up}")
  set(lilac_pc_prefix "\${pcfiledir}/${lilac_pc_up}")
endif()
foreach(folder libdir includedir)
  string(TOUPPER ${folder} upper)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${upper}}")
    set(lilac_pc_${folder} "${CMAKE_INSTALL_${upper}}")
  else()
    set(lilac_pc_${folder} "\${prefix}/${CMAKE_INSTALL_${upper}}")
  endif()
endforeach()
configure_file(cmake/lilac.pc.in lilac.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lilac.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
