# A component is a folder of src/ that is built as an object library. All headers are included as
# <lilac/NAME.h>. The include path of a component has two entries: its own folder, and a folder of generated
# forwarding headers, which contains its own headers and those of the components that it uses. Including
# any other header is a compile error.

# The headers of each component: installed ones in include/lilac, internal ones in src/.
set(LILAC_HEADERS_base base.h bits.h source.h scalar.h)
set(LILAC_HEADERS_f2 f2.h)
set(LILAC_HEADERS_arch arch.h matrix.h occupancy.h)
set(LILAC_HEADERS_layout layout.h replication.h)
set(LILAC_HEADERS_view view.h)
set(LILAC_HEADERS_encoding encoding.h cute.h memory_form.h)
set(LILAC_HEADERS_plan plan.h access.h collective.h dot.h)
set(LILAC_HEADERS_tile tile.h tile_loops.h tile_ops.def tile_effects.def operation_classes.h
    operations.def)
set(LILAC_HEADERS_engine engine.h schedule.h)
set(LILAC_HEADERS_simt simt.h simt_counters.def simt_matrix.h simt_ops.def tensor_map.h)
set(LILAC_HEADERS_lower lower.h)
set(LILAC_HEADERS_target/ptx ptx.h)
set(LILAC_HEADERS_target/sim sim.h)
set(LILAC_HEADERS_driver driver.h)
set(LILAC_HEADERS_explain explain.h)
set(LILAC_HEADERS_runtime runtime.h)

set(LILAC_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)

# The compiler flags of the project's C code.
function(lilac_flags target)
  target_compile_options(${target} PRIVATE ${LILAC_WARNINGS})
  if(LILAC_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${LILAC_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${LILAC_SANITIZE})
  endif()
endfunction()

function(lilac_forward_headers folder components)
  file(MAKE_DIRECTORY ${folder}/lilac)
  foreach(component IN LISTS components)
    foreach(header IN LISTS LILAC_HEADERS_${component})
      set(path ${PROJECT_SOURCE_DIR}/include/lilac/${header})
      if(NOT EXISTS ${path})
        set(path ${PROJECT_SOURCE_DIR}/src/${component}/${header})
      endif()
      file(CONFIGURE OUTPUT ${folder}/lilac/${header} CONTENT "#include \"${path}\"\n")
    endforeach()
  endforeach()
endfunction()

function(lilac_component component)
  cmake_parse_arguments(COMPONENT "" "" "USES" ${ARGN})
  string(REPLACE "/" "_" name ${component})
  set(target lilac_${name})
  set(folder ${PROJECT_SOURCE_DIR}/src/${component})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.c ${folder}/*/*.c)
  set(headers ${PROJECT_BINARY_DIR}/components/${name})
  lilac_forward_headers(${headers} "${component};${COMPONENT_USES}")
  add_library(${target} OBJECT ${sources})
  target_include_directories(${target} PRIVATE ${headers} ${folder})
  set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden
                                             POSITION_INDEPENDENT_CODE ON)
  lilac_flags(${target})
  set_property(GLOBAL APPEND PROPERTY LILAC_COMPONENTS ${target})
endfunction()

# liblilac from all components: static (used by the tests and the command) and shared.
function(lilac_library)
  find_package(Threads REQUIRED)
  get_property(components GLOBAL PROPERTY LILAC_COMPONENTS)
  foreach(kind static shared)
    string(TOUPPER ${kind} KIND)
    add_library(lilac_${kind} ${KIND})
    add_library(lilac::lilac_${kind} ALIAS lilac_${kind})
    # The objects only: components are not exported as targets.
    foreach(component IN LISTS components)
      target_sources(lilac_${kind} PRIVATE $<TARGET_OBJECTS:${component}>)
    endforeach()
    target_link_libraries(lilac_${kind} PUBLIC m Threads::Threads ${CMAKE_DL_LIBS})
    target_include_directories(lilac_${kind} PUBLIC
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    set_target_properties(lilac_${kind} PROPERTIES OUTPUT_NAME lilac LINKER_LANGUAGE C
                          VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
    if(LILAC_SANITIZE)
      target_link_options(lilac_${kind} PUBLIC -fsanitize=${LILAC_SANITIZE})
    endif()
  endforeach()
endfunction()
