-- Not uniformly: A is 65535 up to a million subscribers.
\set a random(0, 65535)
\set b random(1, :subscribers)
\set s (:a | :b) % :subscribers + 1
\set location random(0, 2147483647)
SELECT rdmacc.tatp_update_location(lpad((:s)::text, 15, '0'), :location);
