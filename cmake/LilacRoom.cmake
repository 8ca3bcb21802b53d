# A room is a folder of src/ built as an object library that sees only the headers of the rooms it
# names. Headers of all rooms are written <lilac/NAME.h>; for each room a folder of forwarding
# headers is made that holds just its own and those of the rooms it uses, and nothing else is on its
# include path, so an arrow that goes up or sideways does not compile.

# The headers of each room: installed ones in include/lilac, internal ones in src/.
set(LILAC_HEADERS_base base.h source.h scalar.h)
set(LILAC_HEADERS_f2 f2.h)
set(LILAC_HEADERS_arch arch.h)
set(LILAC_HEADERS_layout layout.h view.h)
set(LILAC_HEADERS_encoding encoding.h cute.h memory_form.h)
set(LILAC_HEADERS_movement movement.h)
set(LILAC_HEADERS_tile tile.h tile_ops.def)
set(LILAC_HEADERS_engine engine.h)
set(LILAC_HEADERS_simt simt.h simt_ops.def)
set(LILAC_HEADERS_lower lower.h)
set(LILAC_HEADERS_target/ptx ptx.h)
set(LILAC_HEADERS_target/sim sim.h)
set(LILAC_HEADERS_driver driver.h)
set(LILAC_HEADERS_runtime runtime.h)

set(LILAC_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)

# Flags that all of the project's own C code is built with.
function(lilac_flags target)
  target_compile_options(${target} PRIVATE ${LILAC_WARNINGS})
  if(LILAC_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${LILAC_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${LILAC_SANITIZE})
  endif()
endfunction()

function(lilac_forward_headers folder rooms)
  file(MAKE_DIRECTORY ${folder}/lilac)
  foreach(room IN LISTS rooms)
    foreach(header IN LISTS LILAC_HEADERS_${room})
      set(path ${PROJECT_SOURCE_DIR}/include/lilac/${header})
      if(NOT EXISTS ${path})
        set(path ${PROJECT_SOURCE_DIR}/src/${room}/${header})
      endif()
      file(CONFIGURE OUTPUT ${folder}/lilac/${header} CONTENT "#include \"${path}\"\n")
    endforeach()
  endforeach()
endfunction()

function(lilac_room room)
  cmake_parse_arguments(ROOM "" "" "USES" ${ARGN})
  string(REPLACE "/" "_" name ${room})
  set(target lilac_${name})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${room}/*.c)
  if(NOT sources)
    message(STATUS "room ${room}: no source files")
    return()
  endif()
  set(headers ${PROJECT_BINARY_DIR}/rooms/${name})
  lilac_forward_headers(${headers} "${room};${ROOM_USES}")
  add_library(${target} OBJECT ${sources})
  target_include_directories(${target} PRIVATE ${headers})
  set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden
                                             POSITION_INDEPENDENT_CODE ON)
  lilac_flags(${target})
  set_property(GLOBAL APPEND PROPERTY LILAC_ROOMS ${target})
endfunction()

# liblilac from all the rooms: static (which tests and the command use) and shared.
function(lilac_library)
  find_package(Threads REQUIRED)
  get_property(rooms GLOBAL PROPERTY LILAC_ROOMS)
  foreach(kind static shared)
    string(TOUPPER ${kind} KIND)
    add_library(lilac_${kind} ${KIND})
    add_library(lilac::lilac_${kind} ALIAS lilac_${kind})
    # The objects only: a room is no part of what is exported.
    foreach(room IN LISTS rooms)
      target_sources(lilac_${kind} PRIVATE $<TARGET_OBJECTS:${room}>)
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
