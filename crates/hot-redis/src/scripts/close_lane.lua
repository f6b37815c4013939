-- After a lost reply: was the commit with this sequence executed? If not, it never will be.
-- KEYS 1 the lane's receipt. ARGV 1 the sequence, 2 receipt ms.
-- Answers the group bits of the commit, or nil when the lane is now closed: a late copy of the commit is refused.
local receipt = redis.call('GET', KEYS[1])
local start = ARGV[1] .. ':'
if receipt and string.sub(receipt, 1, #start) == start then
  return string.sub(receipt, #start + 1)
end
redis.call('SET', KEYS[1], 'closed', 'PX', ARGV[2])
return false
