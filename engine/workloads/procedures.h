#pragma once
#include "engine/protocols/calvin/procedure.h"
#include "engine/workloads/workload.h"

// Workloads' transactions as procedures of a deterministic protocol: a client declares the keys
// of a transaction (Workload::declare, or survey) and sends its inputs; every node that executes
// it runs Workload::execute on the rows of those keys, and comes to the same writes.

namespace rdmacc {

// Of a workload's transactions, the same in every process; 0: there is no workload of that name.
uint32_t procedure_number(std::string_view workload);
// As that; of a workload that the registry does not know (a test's own, of which a process has
// one), a number that no other has.
uint32_t procedure_number_of(const Workload& workload);

// Those of all workloads, for nodes that know of a client's workload what its requests tell:
// name, settings and tables. `procedures` may then be used by several threads.
void add_workload_procedures(ProcedureRegistry& procedures, const WorkloadCluster& cluster);

// Of one workload of this process, whatever its settings; it outlives the procedure.
Procedure procedure_of(const Workload& workload);

// One attempt, as Workload::attempt, by a protocol that executes procedures: as one, or, when its
// keys are not known beforehand or its rows do not fit a forwarded value, by reconnaissance.
// `effect.declared` says which. As a procedure it is never kAborted, unless its keys depend on rows
// (survey) that have changed meanwhile.
Status attempt_as_procedure(const Workload& workload, Session& session, const TxnOptions& options,
                            const TxnInputs& inputs, TxnEffect& effect);

}  // namespace rdmacc
