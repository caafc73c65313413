-- Ten records far from each other, of which two are written: distinct ones.
\set slice :records / 10
\set r0 0 * :slice + random(0, :slice - 1)
\set r1 1 * :slice + random(0, :slice - 1)
\set r2 2 * :slice + random(0, :slice - 1)
\set r3 3 * :slice + random(0, :slice - 1)
\set r4 4 * :slice + random(0, :slice - 1)
\set r5 5 * :slice + random(0, :slice - 1)
\set r6 6 * :slice + random(0, :slice - 1)
\set r7 7 * :slice + random(0, :slice - 1)
\set r8 8 * :slice + random(0, :slice - 1)
\set r9 9 * :slice + random(0, :slice - 1)
SELECT rdmacc.ycsb_transaction(ARRAY[:r0, :r1, :r2, :r3, :r4, :r5, :r6, :r7, :r8, :r9]::int[], 2);
