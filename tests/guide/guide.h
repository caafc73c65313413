#pragma once
#include "engine/protocols/protocols.h"

namespace rdmacc {

// The protocol of docs/writing_a_protocol.md, in NOWAIT's place (take_out.cmake), and with the
// fault that the page plants.
extern const ProtocolRules kGuideRules;
extern const ProtocolRules kGuideFaultyRules;

}  // namespace rdmacc
