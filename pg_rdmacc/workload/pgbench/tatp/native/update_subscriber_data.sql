-- Not uniformly: A is 65535 up to a million subscribers.
\set a random(0, 65535)
\set b random(1, :subscribers)
\set s (:a | :b) % :subscribers + 1
\set facility random(1, 4)
\set bit random(0, 1)
\set data random(0, 255)
SELECT rdmacc.tatp_update_subscriber_data(:s, :facility, :bit, :data);
