#include "engine/report/page.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "engine/report/page_parts.h"
#include "rdma/base/check.h"

namespace rdmacc {

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += letter;
    }
  }
  return escaped;
}

// In JSON the letter stands in strings alone, where it may as well be written by its number: then
// neither "</script>" nor "<!--" can appear.
std::string escape_json_in_script(std::string_view json) {
  std::string escaped;
  for (const char letter : json) {
    if (letter == '<') {
      escaped += "\\u003c";
    } else {
      escaped += letter;
    }
  }
  return escaped;
}

std::string fill_template(std::string_view text, std::initializer_list<PagePart> parts) {
  std::string filled;
  while (!text.empty()) {
    const size_t at = text.find('@');
    filled += text.substr(0, at);
    if (at == text.npos) break;
    const size_t end = text.find('@', at + 1);
    CHECK(end != text.npos);
    const std::string_view name = text.substr(at + 1, end - at - 1);
    const PagePart* found = nullptr;
    for (const PagePart& part : parts) {
      if (part.name == name) found = &part;
    }
    CHECK(found != nullptr);
    filled += found->value;
    text.remove_prefix(end + 1);
  }
  return filled;
}

std::string report_page(std::string_view title, std::string_view runs_json) {
  const std::string shown_title = escape_html(title), runs = escape_json_in_script(runs_json);
  return fill_template(kPageTemplate, {{"TITLE", shown_title},
                                       {"STYLE", kPageStyle},
                                       {"RUNS", runs},
                                       {"CHART", kPageChartLibrary},
                                       {"SCRIPT", kPageScript}});
}

namespace {

// False: errno says why.
bool write_all(const std::string& path, std::string_view content) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  const int error = errno;
  if (std::fclose(file) != 0) return false;
  errno = error;
  return written;
}

}  // namespace

bool is_file_or_absent(const std::string& path) {
  struct stat found;
  return lstat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode);
}

Status write_file_whole(const std::string& path, std::string_view content) {
  const auto failed = [&path](const char* what, int error) {
    return Status(Code::kUnavailable, std::string(what) + " " + path + ": " + std::strerror(error));
  };
  if (!is_file_or_absent(path)) {
    return write_all(path, content) ? Status() : failed("cannot write", errno);
  }
  const std::string unfinished = path + ".unfinished";
  const bool written = write_all(unfinished, content);
  if (written && std::rename(unfinished.c_str(), path.c_str()) == 0) return Status();
  const int error = errno;
  std::remove(unfinished.c_str());
  return failed(written ? "cannot replace" : "cannot write", error);
}

}  // namespace rdmacc
