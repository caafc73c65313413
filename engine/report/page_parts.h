#pragma once
#include <string_view>

// Made of the files of page/ and of the chart library when the program is built (embed.cmake).

namespace rdmacc {

extern const std::string_view kPageTemplate, kPageStyle, kPageScript, kPageChartLibrary;

}  // namespace rdmacc
