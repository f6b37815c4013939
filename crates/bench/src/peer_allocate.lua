-- The peer, and the neighbour of tests: an id as the document's service takes it, "prefers recycled IDs from the free list.
-- Sequential allocation uses a Lua script for atomic check-and-init with wrapping at MaxMonsterId".
--
-- KEYS 1 the counter   2 the free list
local id = redis.call('LPOP', KEYS[2])
if id then return tonumber(id) end
local last = tonumber(redis.call('GET', KEYS[1]))
if not last or last < 1000000000 or last >= 2000000000 then
  redis.call('SET', KEYS[1], '1000000000')
  return 1000000000
end
return redis.call('INCR', KEYS[1])
