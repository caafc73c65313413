# cmake -DOUTPUT=… -DTEMPLATE=… -DSTYLE=… -DSCRIPTS=…;… -DCHART=… -P embed.cmake
# Makes a C++ source of the page's parts: each file as it is, in a raw string.

function(embed name)
  set(content "")
  foreach(file ${ARGN})
    file(READ "${file}" text)
    string(APPEND content "${text}")
  endforeach()
  # What would end the raw string, or the element of the page that it stands in.
  foreach(forbidden ")rdmacc\"" "</script" "</style" "<!--")
    string(FIND "${content}" "${forbidden}" at)
    if(NOT at EQUAL -1 AND NOT name STREQUAL "kPageTemplate")
      message(FATAL_ERROR "${name} contains ${forbidden}, which a page cannot hold")
    endif()
  endforeach()
  file(APPEND "${OUTPUT}" "const std::string_view ${name} = R\"rdmacc(${content})rdmacc\";\n")
endfunction()

file(WRITE "${OUTPUT}" "#include \"engine/report/page_parts.h\"\n\nnamespace rdmacc {\n\n")
embed(kPageTemplate "${TEMPLATE}")
embed(kPageStyle "${STYLE}")
embed(kPageScript ${SCRIPTS})
embed(kPageChartLibrary "${CHART}")
file(APPEND "${OUTPUT}" "\n}  // namespace rdmacc\n")
