/* CHECK for files that see postgres.h, with the meaning that it has in the engine
 * (rdma/base/check.h): a programmer error or a corrupted structure, always compiled in. It is a
 * PANIC, because the engine's transaction may be half way: the server's processes start again, and
 * the nodes with them, or with their rows go on, as rdmacc.durability has it.
 *
 * What a user, a client or a node may bring about, memory that runs out included, is no matter of
 * CHECK but of ereport(). */
#pragma once

extern "C" [[noreturn]] void rdmacc_check_failed(const char* condition, const char* file, int line);

#define CHECK(condition)                                   \
  do {                                                     \
    if (__builtin_expect(!(condition), 0)) {               \
      rdmacc_check_failed(#condition, __FILE__, __LINE__); \
    }                                                      \
  } while (false)
