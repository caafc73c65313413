-- What SQL says of rows, on rdmacc tables as on any other.
-- generated, identity, domain, CHECK, NOT NULL
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TABLE item (
  id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL CHECK (length(name) < 10),
  price positive,
  twice int GENERATED ALWAYS AS (price * 2) STORED,
  note text DEFAULT 'none'
) USING rdmacc;
INSERT INTO item (name, price) VALUES ('one', 1), ('two', 2) RETURNING *;
INSERT INTO item (id, name) VALUES (7, 'x');
INSERT INTO item (id, name) OVERRIDING SYSTEM VALUE VALUES (7, 'seven') RETURNING *;
INSERT INTO item (name, price) VALUES ('bad', -1);
INSERT INTO item (name, price) VALUES ('far too long a name', 1);
INSERT INTO item (price) VALUES (1);
INSERT INTO item (name, twice) VALUES ('x', 1);
WITH u AS (UPDATE item SET price = price + 10 WHERE id < 3 RETURNING id, price, twice)
SELECT * FROM u ORDER BY id;
UPDATE item SET twice = 1;
UPDATE item SET price = -price;
UPDATE item SET note = DEFAULT, price = DEFAULT WHERE id = 7 RETURNING *;
ALTER TABLE item ADD CONSTRAINT cheap CHECK (price < 12);
ALTER TABLE item ADD CONSTRAINT cheap CHECK (price < 13);

-- MERGE
CREATE TABLE incoming (id int PRIMARY KEY, name text, price int) USING rdmacc;
INSERT INTO incoming VALUES (1, 'uno', 5), (2, NULL, NULL), (50, 'fifty', 12), (51, 'toobig', 13);
MERGE INTO item USING incoming s ON item.id = s.id
  WHEN MATCHED AND s.name IS NULL THEN DELETE
  WHEN MATCHED THEN UPDATE SET name = s.name, price = s.price
  WHEN NOT MATCHED AND s.price < 13 THEN INSERT (name, price) VALUES (s.name, s.price);
SELECT * FROM item ORDER BY name;
MERGE INTO item USING (SELECT 1 AS id FROM generate_series(1, 2)) s ON item.id = s.id
  WHEN MATCHED THEN UPDATE SET price = 1;
MERGE INTO item USING (SELECT * FROM incoming WHERE name IS NULL) s ON item.id = s.id
  WHEN MATCHED THEN DO NOTHING
  WHEN NOT MATCHED THEN INSERT (name) VALUES (s.name);

-- ON CONFLICT
INSERT INTO incoming VALUES (1, 'again', 1), (60, 'new', 6) ON CONFLICT DO NOTHING RETURNING id;
INSERT INTO incoming AS i VALUES (1, 'again', 1), (61, 'new', 6)
  ON CONFLICT (id) DO UPDATE SET name = i.name || excluded.name, price = DEFAULT
  WHERE i.price > 1 RETURNING *;
INSERT INTO incoming VALUES (70, 'a', 1), (70, 'b', 2) ON CONFLICT (id) DO UPDATE SET name = 'c';
INSERT INTO incoming VALUES (70, 'a', 1), (70, 'b', 2) ON CONFLICT DO NOTHING;
INSERT INTO incoming VALUES (1, 'x', 1) ON CONFLICT (name) DO NOTHING;
INSERT INTO incoming SELECT id, 'self', price FROM incoming ON CONFLICT ON CONSTRAINT incoming_pkey
  DO UPDATE SET price = coalesce(incoming.price, 0) + 1;
SELECT * FROM incoming ORDER BY id;

-- modifying CTEs see the rows as they were
WITH moved AS (DELETE FROM incoming WHERE id >= 60 RETURNING *),
     added AS (INSERT INTO incoming SELECT id + 100, name, price FROM moved RETURNING id),
     seen AS (SELECT count(*) AS before FROM incoming)
SELECT (SELECT before FROM seen), (SELECT count(*) FROM moved) AS moved,
  (SELECT string_agg(id::text, ',' ORDER BY id) FROM added) AS added;
WITH a AS (UPDATE incoming SET price = 0 WHERE id = 1 RETURNING id),
     b AS (UPDATE incoming SET price = 99 WHERE id = 2 RETURNING price)
INSERT INTO item (name, price) SELECT 'from b', price FROM b RETURNING name, price;
SELECT id, price FROM incoming WHERE id < 3 ORDER BY id;
WITH d AS (DELETE FROM incoming WHERE id = 2) UPDATE incoming SET price = 7 WHERE id IN (1, 2) AND id < 2;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3),
     ins AS (INSERT INTO incoming SELECT 200 + i, 'n', i FROM n RETURNING *) SELECT sum(id) FROM ins;

-- triggers: by row and statement, transition tables, INSTEAD OF, a row that is changed or left out
CREATE TABLE audit (n serial, line text) USING rdmacc;
CREATE FUNCTION by_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_WHEN = 'BEFORE' AND NEW.name = 'skip' THEN RETURN NULL; END IF;
  IF TG_WHEN = 'BEFORE' THEN NEW.name = upper(NEW.name); END IF;
  IF TG_WHEN = 'AFTER' THEN INSERT INTO audit (line) VALUES (TG_OP || ' ' || NEW.name); END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION by_statement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO audit (line) SELECT TG_OP || ' of ' || count(*) || ': ' || sum(price) FROM changed;
  RETURN NULL;
END $$;
CREATE TRIGGER r1 BEFORE INSERT OR UPDATE ON incoming FOR EACH ROW EXECUTE FUNCTION by_row();
CREATE TRIGGER r2 AFTER INSERT OR UPDATE OF name ON incoming FOR EACH ROW EXECUTE FUNCTION by_row();
CREATE TRIGGER s1 AFTER INSERT ON incoming REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION by_statement();
CREATE TRIGGER s2 AFTER UPDATE ON incoming REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION by_statement();
CREATE TRIGGER s3 AFTER DELETE ON incoming REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION by_statement();
DELETE FROM incoming WHERE id > 3;
INSERT INTO incoming VALUES (10, 'ten', 10), (11, 'skip', 11), (12, 'twelve', 12);
COPY incoming FROM stdin;
13	thirteen	13
14	skip	14
\.
UPDATE incoming SET price = price + 1 WHERE id >= 10;
UPDATE incoming SET name = 'dozen' WHERE id = 12 RETURNING *;
INSERT INTO incoming VALUES (10, 'ten', 0), (15, 'new', 15) ON CONFLICT (id) DO UPDATE SET price = 1;
DELETE FROM incoming WHERE id IN (10, 13);
SELECT line FROM audit ORDER BY n;
CREATE VIEW prices AS SELECT id, price FROM incoming WHERE price > 5 WITH CHECK OPTION;
UPDATE prices SET price = 3 WHERE id = 12;
UPDATE prices SET price = 6 WHERE id = 12 RETURNING *;
INSERT INTO prices VALUES (16, 1);

-- row security
CREATE ROLE reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON incoming, audit TO reader;
GRANT USAGE ON SEQUENCE audit_n_seq TO reader;
ALTER TABLE incoming ENABLE ROW LEVEL SECURITY;
CREATE POLICY cheap ON incoming USING (price < 10) WITH CHECK (price < 8);
SET ROLE reader;
SELECT id FROM incoming ORDER BY id;
UPDATE incoming SET price = price + 1 WHERE id = 12 RETURNING id, price;
UPDATE incoming SET price = 9 WHERE id = 12;
INSERT INTO incoming VALUES (20, 'dear', 20);
INSERT INTO incoming VALUES (15, 'hidden', 1) ON CONFLICT (id) DO UPDATE SET price = 2;
INSERT INTO incoming VALUES (15, 'hidden', 1) ON CONFLICT DO NOTHING;
DELETE FROM incoming WHERE id = 15;
RESET ROLE;
SELECT id, price FROM incoming ORDER BY id;

-- cursors that scroll or are held
BEGIN;
DECLARE scrolls SCROLL CURSOR FOR SELECT id, price FROM incoming ORDER BY id;
DECLARE held SCROLL CURSOR WITH HOLD FOR SELECT id, name FROM incoming ORDER BY id;
FETCH LAST FROM scrolls;
FETCH FIRST FROM scrolls;
UPDATE incoming SET price = 0;
DELETE FROM incoming WHERE id = 15;
FETCH ABSOLUTE 3 FROM scrolls;
FETCH BACKWARD ALL FROM scrolls;
FETCH 1 FROM held;
COMMIT;
FETCH ALL FROM held;
FETCH BACKWARD 2 FROM held;
CLOSE held;

-- blocks with exceptions, one in another
CREATE FUNCTION nested() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  told text := '';
BEGIN
  INSERT INTO incoming VALUES (30, 'outer', 1);
  BEGIN
    UPDATE incoming SET price = 2 WHERE id = 30;
    BEGIN
      INSERT INTO incoming VALUES (31, 'inner', 1);
      INSERT INTO incoming VALUES (30, 'twice', 1);
    EXCEPTION WHEN unique_violation THEN
      told := told || 'unique ';
      INSERT INTO incoming VALUES (32, 'handler', 1);
    END;
    UPDATE incoming SET price = 1 / (price - price) WHERE id = 30;
  EXCEPTION WHEN division_by_zero THEN
    told := told || 'division ' || (SELECT string_agg(id || ':' || price, ',' ORDER BY id)
                                    FROM incoming WHERE id >= 30);
    FOR i IN 33 .. 35 LOOP
      BEGIN
        INSERT INTO incoming VALUES (i, 'loop', i);
        IF i % 2 = 0 THEN RAISE EXCEPTION 'even'; END IF;
      EXCEPTION WHEN raise_exception THEN
        told := told || ' ' || SQLERRM;
      END;
    END LOOP;
  END;
  RETURN told;
END $$;
SELECT nested();
SELECT id, price FROM incoming WHERE id >= 30 ORDER BY id;
CREATE PROCEDURE steps() LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 40 .. 43 LOOP
    INSERT INTO incoming VALUES (i, 'step', i);
    IF i % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF;
  END LOOP;
END $$;
CALL steps();
SELECT id FROM incoming WHERE id >= 40 ORDER BY id;
DROP VIEW prices;
DROP TABLE item, incoming, audit;
DROP FUNCTION by_row, by_statement, nested;
DROP PROCEDURE steps;
DROP DOMAIN positive;
DROP ROLE reader;
