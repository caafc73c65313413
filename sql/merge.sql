-- MERGE: every action; a row that two source rows match is an error.
CREATE TABLE stock (item int PRIMARY KEY, amount int) USING rdmacc;
CREATE TABLE delivery (item int, amount int) USING rdmacc;
INSERT INTO stock VALUES (1, 10), (2, 20), (3, 30);
INSERT INTO delivery VALUES (2, 5), (3, -30), (4, 40);
MERGE INTO stock s USING delivery d ON s.item = d.item
  WHEN MATCHED AND s.amount + d.amount = 0 THEN DELETE
  WHEN MATCHED THEN UPDATE SET amount = s.amount + d.amount
  WHEN NOT MATCHED THEN INSERT VALUES (d.item, d.amount);
SELECT * FROM stock ORDER BY item;
INSERT INTO delivery VALUES (2, 1);
MERGE INTO stock s USING delivery d ON s.item = d.item
  WHEN MATCHED THEN UPDATE SET amount = 0;
MERGE INTO stock s USING delivery d ON s.item = d.item
  WHEN MATCHED THEN DELETE;
SELECT * FROM stock ORDER BY item;
-- ctid tells only whether a row is there
SELECT s.ctid IS NOT NULL AS matched, s.item, d.item
  FROM stock s FULL JOIN delivery d ON s.item = d.item ORDER BY 2, 3;
DROP TABLE stock, delivery;
