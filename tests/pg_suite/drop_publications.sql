-- Publications of all tables that a refused statement left behind would forbid the files after
-- this one to update anything.
SET client_min_messages = warning;
DO $$
DECLARE
  publication name;
BEGIN
  FOR publication IN SELECT pubname FROM pg_publication LOOP
    EXECUTE format('DROP PUBLICATION %I', publication);
  END LOOP;
END $$;
