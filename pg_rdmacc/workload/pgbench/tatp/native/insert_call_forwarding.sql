-- Not uniformly: A is 65535 up to a million subscribers.
\set a random(0, 65535)
\set b random(1, :subscribers)
\set s (:a | :b) % :subscribers + 1
\set facility random(1, 4)
\set starts 8 * random(0, 2)
\set ends :starts + random(1, 8)
\set target random(1, :subscribers)
SELECT rdmacc.tatp_insert_call_forwarding(lpad((:s)::text, 15, '0'), :facility, :starts,
  :ends, lpad((:target)::text, 15, '0'));
