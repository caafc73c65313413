
-- ---- The native drivers (rdmacc_bench), on the server's own nodes, each run on tables of its own,
-- which are in memory alone and are dropped when it ends.
CREATE FUNCTION @extschema@.bench_report(
  workload text,
  protocol text DEFAULT NULL,
  stages text DEFAULT NULL,
  duration interval DEFAULT '10 s',
  threads int DEFAULT 1,
  coroutines int DEFAULT 8,
  settings text DEFAULT '',
  lock_mode text DEFAULT NULL,
  seed bigint DEFAULT 1,
  enumerate boolean DEFAULT false,
  preset text DEFAULT NULL)
RETURNS jsonb
AS 'MODULE_PATHNAME', 'rdmacc_bench_report'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION
  @extschema@.bench_report(text, text, text, interval, int, int, text, text, bigint, boolean, text) IS
  'runs a native driver on this server''s nodes: its whole report';
REVOKE ALL ON FUNCTION
  @extschema@.bench_report(text, text, text, interval, int, int, text, text, bigint, boolean, text)
  FROM PUBLIC;

CREATE FUNCTION @extschema@.bench(
  workload text,
  protocol text DEFAULT NULL,
  stages text DEFAULT NULL,
  duration interval DEFAULT '10 s',
  threads int DEFAULT 1,
  coroutines int DEFAULT 8,
  settings text DEFAULT '',
  lock_mode text DEFAULT NULL,
  seed bigint DEFAULT 1,
  preset text DEFAULT NULL,
  OUT second int,
  OUT committed bigint,
  OUT rolled_back bigint,
  OUT aborted bigint,
  OUT latency_mean_us float8,
  OUT latency_p50_us float8,
  OUT latency_p99_us float8)
RETURNS SETOF record LANGUAGE sql VOLATILE PARALLEL UNSAFE AS $$
  SELECT place::int, (each->>'committed')::bigint, (each->>'rolled_back')::bigint,
         (each->>'aborted')::bigint, (each->>'mean_us')::float8, (each->>'p50_us')::float8,
         (each->>'p99_us')::float8
  FROM jsonb_array_elements(
         @extschema@.bench_report(workload, protocol, stages, duration, threads, coroutines,
                                  settings, lock_mode, seed, false, preset)->'timeline')
       WITH ORDINALITY AS seconds(each, place)
  ORDER BY place
$$;
COMMENT ON FUNCTION
  @extschema@.bench(text, text, text, interval, int, int, text, text, bigint, text) IS
  'runs a native driver on this server''s nodes: a row a second';
REVOKE ALL ON FUNCTION
  @extschema@.bench(text, text, text, interval, int, int, text, text, bigint, text) FROM PUBLIC;

CREATE FUNCTION @extschema@.enumerate(
  workload text,
  protocol text DEFAULT NULL,
  duration interval DEFAULT '1 s',
  threads int DEFAULT 1,
  coroutines int DEFAULT 8,
  settings text DEFAULT '',
  lock_mode text DEFAULT NULL,
  seed bigint DEFAULT 1,
  preset text DEFAULT NULL,
  OUT rank int,
  OUT stages int,
  OUT by_rpc text,
  OUT committed_per_second float8,
  OUT over_rpc float8,
  OUT over_one_sided float8,
  OUT abort_rate float8,
  OUT latency_mean_us float8,
  OUT latency_p99_us float8,
  OUT round_trips float8)
RETURNS SETOF record LANGUAGE sql VOLATILE PARALLEL UNSAFE AS $$
  WITH run AS (
    SELECT place, each, (each->>'stages')::int AS code,
           (each->>'committed_per_second')::float8 AS speed
    FROM jsonb_array_elements(
           @extschema@.bench_report(workload, protocol, NULL, duration, threads, coroutines,
                                    settings, lock_mode, seed, true, preset))
         WITH ORDINALITY AS runs(each, place))
  SELECT place::int, code,
         (SELECT string_agg(DISTINCT stage->>'stage', ', ')
          FROM jsonb_array_elements(each->'stage_latency') stage
          WHERE stage->>'primitive' = 'rpc'),
         speed,
         speed / nullif((SELECT speed FROM run ORDER BY code LIMIT 1), 0),
         speed / nullif((SELECT speed FROM run ORDER BY code DESC LIMIT 1), 0),
         (each->>'abort_rate')::float8, (each->'latency_us'->>'mean')::float8,
         (each->'latency_us'->>'p99')::float8, (each->'per_transaction'->>'round_trips')::float8
  FROM run ORDER BY place
$$;
COMMENT ON FUNCTION @extschema@.enumerate(text, text, interval, int, int, text, text, bigint, text) IS
  'runs a native driver under every distinct hybrid code of a protocol: ranked';
REVOKE ALL ON FUNCTION @extschema@.enumerate(text, text, interval, int, int, text, text, bigint, text)
  FROM PUBLIC;
