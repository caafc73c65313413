#pragma once
#include "engine/log/log_ring.h"
#include "engine/storage/wire/storage_service.h"
#include "engine/txn/remote/serving_frame.h"
#include "engine/txn/remote/stage_message.h"

namespace rdmacc {

// One request while it is served, private to stage_server.cc. Each member reads the items, carries
// the stage out and writes the answer: the status, then a result for every item. A Status that is
// not ok is the whole answer: the request was refused, and nothing of it was done.
class Serving {
 public:
  static constexpr uint32_t kItemsMax = 64 * 1024;

  Serving(StageContext& context, ServingFrame& frame, NodeId node, const StageHeader& header,
          MessageReader& in, Rpc::Bytes& reply)
      : context_(context), frame_(frame), node_(node), header_(header), in_(in), out_(reply) {
    CHECK(node < context.engine.topology.nodes && header.count <= kItemsMax);
  }

  Status find();
  Status scan();
  Status lock();
  Status validate();
  Status log(WorkerId from);
  Status commit();
  Status release();
  Status end(WorkerId from);
  Status release_ctts(StorageService* storage);

 private:
  // The status, and the largest stamp that was seen: the caller's clock goes on from there.
  void answer(const Status& status) {
    write_status(out_, status);
    out_.u64(context_.engine.clock.last());
  }
  bool valid(GlobalAddress header) const {
    const RegionLayout& layout = context_.engine.layout;
    return header.node() == node_ && header.offset() % 64 == 0 && header.offset() >= layout.pages &&
           header.offset() + sizeof(Header) <= layout.region_bytes;
  }
  bool may_install_all(const LogRecord& record) const;
  bool read_all_held(size_t count);
  Status read_logged_record(const LogPlacement& placement);
  Status log_one(const LogPlacement& placement);

  StageContext& context_;
  ServingFrame& frame_;
  const NodeId node_;
  const StageHeader& header_;
  MessageReader& in_;
  MessageWriter out_;
};

inline Status malformed_stage_request() {
  return Status(Code::kCorrupt, "malformed stage request");
}

}  // namespace rdmacc
