-- Releases the fairness leases that are ours.
--
-- KEYS  the lease keys
-- ARGV  1 process
for _, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[1] then redis.call('DEL', key) end
end
