#pragma once
#include <string>
#include <string_view>

#include "rdma/base/status.h"

namespace rdmacc {

// A page for a browser that shows runs: one file, which asks for nothing from the network.
// `runs_json` is an array of runs as engine/bench/README.md describes them; `title` is plain text.
std::string report_page(std::string_view title, std::string_view runs_json);

// Neither a device nor a pipe, a folder or a link to a file.
bool is_file_or_absent(const std::string& path);
// Replaces such a file; what is none is written to where it is, as a device must not become a file.
// kUnavailable: it cannot be written, and why; a file that was there stays as it was then.
Status write_file_whole(const std::string& path, std::string_view content);

// As it stands in a page: text in an element, and JSON in a script, which nothing in it may end.
std::string escape_html(std::string_view text);
std::string escape_json_in_script(std::string_view json);

// `text` with each @NAME@ replaced by its value; a value is not looked at again. CHECKs that every
// name is there.
struct PagePart {
  std::string_view name, value;
};
std::string fill_template(std::string_view text, std::initializer_list<PagePart> parts);

}  // namespace rdmacc
