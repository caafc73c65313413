// Ordered indexes that are damaged on purpose, as rows of their table.
#include "engine/verify/tree.h"
#include "tests/unit/index/indexed_engine.h"
#include "tests/unit/verify/verified_engine.h"

namespace rdmacc {
namespace {

class TreeDamage : public testing::Test {
 protected:
  static constexpr uint32_t kEntries = 400;

  TreeDamage() : indexed_(9) {
    indexed_.transact([&](Session& session) {
      for (uint32_t i = 0; i < kEntries; ++i) {
        EXPECT_EQ(indexed_.insert(session, entry(i)), Code::kOk);
      }
    });
  }
  static std::string entry(uint32_t i) {
    return "an entry of some length " + std::to_string(1000 + i);
  }

  std::set<std::string> kinds() {
    std::set<std::string> kinds;
    indexed_.engine().run(indexed_.coordinator(), [&] {
      Session session(indexed_.coordinator());
      const TableToVerify index{indexed_.index().table, true};
      auto report = verify_tables(session, std::span(&index, 1), VerifyOptions{});
      ASSERT_TRUE(report.ok()) << report.status().to_string();
      for (const Finding& finding : report->findings) kinds.insert(finding.kind);
    });
    return kinds;
  }
  // Changes the node that is the root's first child.
  void change_first_child(const std::function<void(NodeDraft&)>& change) {
    indexed_.transact([&](Session& session) {
      const TableId table = indexed_.index().table;
      RowView row;
      ASSERT_TRUE(session.get(table, NodeKey(kRootNumber).view(), row).ok());
      const NodeNumber number = TreeNode::parse(row.row)->child(0);
      ASSERT_TRUE(session.get(table, NodeKey(number).view(), row).ok());
      const std::string bytes(row.row);
      NodeDraft node(*TreeNode::parse(bytes));
      change(node);
      ASSERT_TRUE(session.put(table, NodeKey(number).view(), node.encode(number)).ok());
    });
  }
  Status compare(std::vector<Finding>& findings, const EntriesOf& entries_of) {
    Status status;
    indexed_.engine().run(indexed_.coordinator(), [&] {
      Session session(indexed_.coordinator());
      status = check_entries(session, VerifyOptions{}, table_, indexed_.index().table, entries_of,
                             findings);
    });
    return status;
  }

  IndexedEngine indexed_;
  TableId table_ = kNoTable;
};

TEST_F(TreeDamage, IsNotSeenWhereThereIsNone) { EXPECT_THAT(kinds(), testing::IsEmpty()); }

TEST_F(TreeDamage, FenceThatTheParentDoesNotKnow) {
  change_first_child([](NodeDraft& node) { node.high = "an entry of some length 0"; });
  EXPECT_THAT(kinds(), testing::ElementsAre(kFindingTreeNode));
}

TEST_F(TreeDamage, ItemsOutOfOrder) {
  change_first_child([](NodeDraft& node) { std::swap(node.items[1], node.items[2]); });
  EXPECT_THAT(kinds(), testing::ElementsAre(kFindingTreeNode));
}

TEST_F(TreeDamage, NodeAtTheWrongHeight) {
  change_first_child([](NodeDraft& node) { node.height += 2; });
  EXPECT_THAT(kinds(), testing::ElementsAre(kFindingTreeNode));
}

TEST_F(TreeDamage, NodeThatNothingLeadsTo) {
  indexed_.transact([&](Session& session) {
    NodeDraft node;
    ASSERT_TRUE(
        session.insert(indexed_.index().table, NodeKey(4711).view(), node.encode(4711)).ok());
  });
  EXPECT_THAT(kinds(), testing::ElementsAre(kFindingTreeNode));
}

TEST_F(TreeDamage, EntriesAndRowsThatDoNotAgree) {
  indexed_.engine().run(indexed_.coordinator(), [&] {
    Session session(indexed_.coordinator());
    TableSpec spec;
    spec.relfilenode = 2;
    auto table = session.create_table(spec);
    ASSERT_TRUE(table.ok());
    table_ = table->id;
    ASSERT_TRUE(session.begin(TxnOptions{}).ok());
    for (uint32_t i = 0; i < kEntries; ++i) {
      ASSERT_TRUE(session.insert(table_, std::to_string(i), entry(i)).ok());
    }
    ASSERT_TRUE(session.commit().ok());
  });
  const EntriesOf row_itself = [](const RowView& row, std::vector<std::string>& entries) {
    entries.emplace_back(row.row);
    return Status();
  };
  std::vector<Finding> findings;
  ASSERT_TRUE(compare(findings, row_itself).ok());
  EXPECT_THAT(findings, testing::IsEmpty());
  indexed_.transact([&](Session& session) {
    EXPECT_EQ(indexed_.remove(session, entry(17)), Code::kOk);
    EXPECT_EQ(indexed_.insert(session, "no row's"), Code::kOk);
  });
  ASSERT_TRUE(compare(findings, row_itself).ok());
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].kind, kFindingNoEntry);
  EXPECT_EQ(findings[0].key, entry(17));
  EXPECT_EQ(findings[1].kind, kFindingNoRow);
  EXPECT_EQ(findings[1].key, "no row's");
}

}  // namespace
}  // namespace rdmacc
