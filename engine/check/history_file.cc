#include "engine/check/history_file.h"

#include <cerrno>
#include <cstring>
#include <mutex>

namespace rdmacc {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

const char* outcome_name(HistoryOutcome outcome) {
  switch (outcome) {
    case HistoryOutcome::kCommitted:
      return "committed";
    case HistoryOutcome::kAborted:
      return "aborted";
    case HistoryOutcome::kUnknown:
      return "unknown";
  }
  CHECK(false);
}

// The key's printable form holds no control bytes; JSON still wants quotes and backslashes escaped.
void append_json_key(std::string_view key, std::string& out) {
  out += '"';
  for (const char c : printable_key(key)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
}

void append_event(const HistoryEvent& event, std::string& out) {
  out += "[\"";
  out += static_cast<char>(event.op);
  out += "\",";
  out += std::to_string(event.table);
  out += ',';
  if (event.op != HistoryOp::kScan) {
    append_json_key(event.key, out);
    out += ',';
    out += std::to_string(event.version);
    out += ']';
    return;
  }
  out += '[';
  for (const ScannedGroup& group : event.groups) {
    if (&group != &event.groups.front()) out += ',';
    out += '[' + std::to_string(group.node) + ',' + std::to_string(group.bits) + ',' +
           std::to_string(group.depth) + ',' + std::to_string(group.stamp) + ']';
  }
  out += "]]";
}

class BufferedHistoryFile final : public HistoryFile {
 public:
  BufferedHistoryFile(std::FILE* file, std::string path) : file_(file), path_(std::move(path)) {
    std::setvbuf(file_, nullptr, _IOFBF, kBufferBytes);
  }
  ~BufferedHistoryFile() override {
    if (file_ != nullptr) std::fclose(file_);
  }

  void add(HistoryTransaction transaction) override {
    const std::string line = to_json_line(transaction) + "\n";
    const std::lock_guard<std::mutex> guard(mutex_);
    if (file_ == nullptr || failed_errno_ != 0) return;
    if (std::fwrite(line.data(), 1, line.size(), file_) != line.size()) failed_errno_ = errno;
  }

  Status close() override {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (file_ == nullptr) return Status();
    if (std::fclose(file_) != 0 && failed_errno_ == 0) failed_errno_ = errno;
    file_ = nullptr;
    if (failed_errno_ == 0) return Status();
    return Status(Code::kSystem, "writing " + path_ + ": " + std::strerror(failed_errno_));
  }

 private:
  std::mutex mutex_;  // guards all below
  std::FILE* file_;
  const std::string path_;
  int failed_errno_ = 0;
};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string printable_key(std::string_view key) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(key.size());
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F && c != '\\') {
      text += c;
    } else {
      text += "\\x";
      text += kDigits[byte >> 4];
      text += kDigits[byte & 15];
    }
  }
  return text;
}

std::optional<std::string> parse_printable_key(std::string_view text) {
  std::string key;
  key.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      key += text[i];
      continue;
    }
    if (i + 3 >= text.size() || text[i + 1] != 'x') return std::nullopt;
    const int high = hex_digit(text[i + 2]), low = hex_digit(text[i + 3]);
    if (high < 0 || low < 0) return std::nullopt;
    key += static_cast<char>(high * 16 + low);
    i += 3;
  }
  return key;
}

std::string to_json_line(const HistoryTransaction& transaction) {
  std::string line = "{\"txn\":" + std::to_string(transaction.ctts) +
                     ",\"worker\":" + std::to_string(transaction.worker) + ",\"protocol\":\"" +
                     protocol_name(transaction.protocol) +
                     "\",\"stages\":" + std::to_string(transaction.stages) + ",\"outcome\":\"" +
                     outcome_name(transaction.outcome) + "\"";
  if (transaction.reason != AbortReason::kNone) {
    line += ",\"reason\":\"";
    line += abort_reason_name(transaction.reason);
    line += '"';
  }
  line += ",\"start\":" + std::to_string(transaction.start_us) +
          ",\"end\":" + std::to_string(transaction.end_us) + ",\"ops\":[";
  for (const HistoryEvent& event : transaction.events) {
    if (&event != &transaction.events.front()) line += ',';
    append_event(event, line);
  }
  line += "]}";
  return line;
}

Result<std::unique_ptr<HistoryFile>> HistoryFile::create(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) {
    return Status(Code::kSystem, "cannot create " + path + ": " + std::strerror(errno));
  }
  return std::unique_ptr<HistoryFile>(new BufferedHistoryFile(file, path));
}

}  // namespace rdmacc
