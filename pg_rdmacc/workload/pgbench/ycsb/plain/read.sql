\set record random(0, :records - 1)
SELECT field1, field2, field3, field4, field5, field6, field7, field8, field9, field10 FROM usertable WHERE ycsb_key = :record;
