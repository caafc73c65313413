#pragma once

namespace rdmacc {

// What posted verbs save, all of it unless it is left out, so that a run can tell what each is
// worth (RCBench §6.1 and §6.3, DrTM+H §3). Where verbs are carried out in place there is nothing
// of it.
struct VerbSavings {
  // Rounds (DoorbellBatch). Without: each verb is a chain of its own, and waited for.
  bool doorbell_batches = true;
  // Chains of a round to several nodes are under way together. Without: one after the other.
  bool outstanding_requests = true;
  // A lock is taken by a CAS from what it is likely to be. Without: its header is read before.
  bool one_cas = true;
  // Header and record come by one READ where a lock keeps them. Without: by two of one chain.
  bool one_read = true;
  // What a commit writes and what it only releases go in one round. Without: in two.
  bool one_round = true;
};

struct NamedSaving {
  const char* name;
  bool VerbSavings::*saving;
};
inline constexpr NamedSaving kVerbSavings[] = {
    {"doorbell_batches", &VerbSavings::doorbell_batches},
    {"outstanding_requests", &VerbSavings::outstanding_requests},
    {"one_cas", &VerbSavings::one_cas},
    {"one_read", &VerbSavings::one_read},
    {"one_round", &VerbSavings::one_round},
};

}  // namespace rdmacc
