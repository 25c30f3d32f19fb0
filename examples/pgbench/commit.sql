\set think_us random_exponential(0, 500000, 10)
\set aid random(1, 100000)
\set low random(1, 90000)
\sleep :think_us us
WITH scanned AS (SELECT sum(abalance) AS total, max(length(filler)) AS longest FROM pgbench_accounts WHERE aid BETWEEN :low AND :low + 10000), moved AS (UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid RETURNING aid) INSERT INTO journal SELECT moved.aid, repeat(md5((total + longest)::text), 256) FROM scanned, moved;
