-- Not uniformly: A is 65535 up to a million subscribers.
\set a random(0, 65535)
\set b random(1, :subscribers)
\set s (:a | :b) % :subscribers + 1
\set type random(1, 4)
SELECT rdmacc.tatp_get_access_data(:s, :type);
