-- SmallBank's tables, and a ledger of what transactions put in or took out, written by the same
-- transaction: the balances minus the ledger never change.
CREATE TABLE accounts (custid bigint PRIMARY KEY, name text NOT NULL) USING rdmacc;
CREATE TABLE savings (custid bigint PRIMARY KEY, bal bigint NOT NULL) USING rdmacc;
CREATE TABLE checking (custid bigint PRIMARY KEY, bal bigint NOT NULL) USING rdmacc;
CREATE TABLE ledger (delta bigint NOT NULL) USING rdmacc;
