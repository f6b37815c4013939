-- The peer: damage as the document's service applies it, "a Lua script for atomic HP deduction and damage entry append".
--
-- KEYS 1 the monster's record (JSON)
-- ARGV 1 the character   2 the damage   3 entries that a monster keeps when it is made whole
-- Answers { health taken, 1 if that killed }, or nil when there is no monster.
--
-- Only for the benchmark: a monster that was killed is whole again in the same call, as in our transaction beside it, so
-- that records stay of one size. What cjson does to an empty list (it becomes {}) is left as it is.
local json = redis.call('GET', KEYS[1])
if not json then return nil end
local monster = cjson.decode(json)
local actual = math.min(monster.hp, tonumber(ARGV[2]))
monster.hp = monster.hp - actual
local entries = monster.damageEntries
entries[#entries + 1] = { characterId = tonumber(ARGV[1]), damage = actual }
local killed = 0
if monster.hp == 0 then
  killed = 1
  monster.hp = monster.maxHp
  local keep = tonumber(ARGV[3])
  for i = #entries, keep + 1, -1 do entries[i] = nil end
end
redis.call('SET', KEYS[1], cjson.encode(monster))
return { actual, killed }
