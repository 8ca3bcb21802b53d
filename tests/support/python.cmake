# Tests that are Python scripts (standard library only). Without Python they are visible skips.
find_package(Python3 3.9 COMPONENTS Interpreter QUIET)

function(lilac_python_test name script)
  if(Python3_Interpreter_FOUND)
    add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} -B ${script} --lilac $<TARGET_FILE:lilac> ${ARGN})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 120)
  else()
    add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: there is no python3 >= 3.9")
    set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "skipped:")
  endif()
endfunction()
