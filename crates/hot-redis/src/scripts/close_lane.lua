#!lua flags=allow-oom
-- After a lost reply: was the commit with this sequence executed? If not, it never will be.
-- KEYS 1 the lane's receipt. ARGV 1 the sequence, 2 receipt ms, 3 what the server's clock should show by now.
-- Answers the group bits of the commit; nil when the lane is now closed: a late copy of the commit is refused; 1 when
-- the clock has jumped so far ahead that a receipt may have ended before its time: then nobody knows.
-- Works without memory too: receipts are small and short-lived, and a question must be answered.
local receipt = redis.call('GET', KEYS[1])
local start = ARGV[1] .. ':'
if receipt and string.sub(receipt, 1, #start) == start then
  return string.sub(receipt, #start + 1)
end
redis.call('SET', KEYS[1], 'closed', 'PX', ARGV[2])
local t = redis.call('TIME')
if not receipt and tonumber(t[1]) * 1000 - tonumber(ARGV[3]) > tonumber(ARGV[2]) / 2 then return 1 end
return false
