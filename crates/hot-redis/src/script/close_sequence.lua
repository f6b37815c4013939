#!lua flags=allow-oom
-- After a lost reply: was the commit with this sequence number executed? If not, it never will be.
-- KEYS 1 the receipt. ARGV 1 the sequence number, 2 receipt ms, 3 what the server's clock should show by now.
-- Answers what the receipt says of the groups; nil when the sequence is now closed, so that a late copy of the
-- commit is refused; 1 when the clock has jumped so far ahead that a receipt may have expired early: then the
-- outcome is unknown. allow-oom: receipts are small and short-lived, and the question must be answered on a
-- full server too.
local receipt = redis.call('GET', KEYS[1])
local start = ARGV[1] .. ':'
if receipt and string.sub(receipt, 1, #start) == start then
  return string.sub(receipt, #start + 1)
end
local t = redis.call('TIME')
local time, estimate, life = tonumber(t[1]) * 1000, tonumber(ARGV[3]), tonumber(ARGV[2])
-- Once the mark has expired, a late copy is refused by its time. That time may be ahead of this clock.
local mark = string.format('%.0f', math.max(time, estimate) + 1000 + life)
redis.call('SET', KEYS[1], 'closed', 'PXAT', mark)
if not receipt and time - estimate > life / 2 then return 1 end
return false
