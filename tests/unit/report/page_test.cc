// Pages: JSON comes back out of the page as it went in, whatever it contains, and templates are
// filled once.
#include "engine/report/page.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/report/page_parts.h"

namespace rdmacc {
namespace {

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t at = text.find(begin);
  if (at == text.npos) return "nothing begins with " + begin;
  const size_t from = at + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

size_t times(std::string_view text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
  return count;
}

constexpr const char* kJsonBegin = "<script type=\"application/json\" id=\"runs\">";

TEST(Page, HoldsTheRunsAsTheyWere) {
  const nlohmann::json runs = {{{"command", "</script><script>alert(1)</script><!-- <SCRIPT"},
                                {"name", "\\u003c \"quoted\" & @STYLE@ \u00b5s"},
                                {"committed_per_second", 1.5}}};
  const std::string page = report_page("a <b> & \"c\"", runs.dump());
  const std::string held = between(page, kJsonBegin, "</script>");
  EXPECT_EQ(nlohmann::json::parse(held), runs) << held;
  EXPECT_EQ(held.find('<'), held.npos);
  EXPECT_EQ(between(page, "<title>", "</title>"), "a &lt;b&gt; &amp; &quot;c&quot;");
}

// Two more end the page's own scripts, the library's and the data's.
TEST(Page, HasItsOwnScriptsAlone) {
  const std::string plain = report_page("t", "[]");
  const std::string hostile = report_page("</script>", R"([{"a":"</script><script>x</script>"}])");
  EXPECT_EQ(times(plain, "<script"), 3u);
  EXPECT_EQ(times(plain, "</script>"), 3u);
  EXPECT_EQ(times(hostile, "<script"), 3u);
  EXPECT_EQ(times(hostile, "</script>"), 3u);
}

TEST(Page, AsksForNothingFromTheNetwork) {
  const std::string page = report_page("t", "[]");
  for (const char* way :
       {"<script src", "<link rel=\"stylesheet\"", "@import", "<img", "<iframe"}) {
    EXPECT_EQ(page.find(way), page.npos) << way;
  }
  EXPECT_EQ(kPageStyle.find("url("), kPageStyle.npos);
  EXPECT_EQ(kPageScript.find("fetch("), kPageScript.npos);
  EXPECT_NE(kPageChartLibrary.find("MIT License"), kPageChartLibrary.npos);
  EXPECT_NE(page.find(kPageChartLibrary), page.npos);
}

TEST(Template, IsFilledOnceAndEachPlace) {
  EXPECT_EQ(fill_template("a @X@ b @Y@ c @X@", {{"X", "@Y@"}, {"Y", "2"}}), "a @Y@ b 2 c @Y@");
  EXPECT_EQ(fill_template("none", {}), "none");
  EXPECT_EQ(fill_template("", {}), "");
  EXPECT_DEATH(fill_template("@Z@", {{"X", "1"}}), "");
  EXPECT_DEATH(fill_template("half @X", {{"X", "1"}}), "");
}

TEST(WholeFile, IsReplacedOrStaysAsItWas) {
  const std::string path = testing::TempDir() + "page_test_" + std::to_string(getpid()) + ".html";
  ASSERT_TRUE(write_file_whole(path, "first").ok());
  ASSERT_TRUE(write_file_whole(path, "second").ok());
  std::stringstream content;
  content << std::ifstream(path).rdbuf();
  EXPECT_EQ(content.str(), "second");
  EXPECT_FALSE(std::ifstream(path + ".unfinished").good());
  std::remove(path.c_str());
  const Status refused = write_file_whole("/no/such/folder/page.html", "x");
  EXPECT_EQ(refused.message(), "cannot write /no/such/folder/page.html: No such file or directory");
}

TEST(WholeFile, WritesToWhatIsNoFileInItsPlace) {
  const std::string link = testing::TempDir() + "page_test_" + std::to_string(getpid()) + ".link";
  const std::string path = link + ".target";
  ASSERT_EQ(symlink(path.c_str(), link.c_str()), 0);
  ASSERT_TRUE(write_file_whole(link, "a page").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  std::stringstream content;
  content << std::ifstream(path).rdbuf();
  EXPECT_EQ(content.str(), "a page");
  std::remove(path.c_str());
  std::remove(link.c_str());

  ASSERT_EQ(symlink("/dev/full", link.c_str()), 0);
  EXPECT_EQ(write_file_whole(link, "a page").message(),
            "cannot write " + link + ": No space left on device");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  std::remove(link.c_str());
}

}  // namespace
}  // namespace rdmacc
