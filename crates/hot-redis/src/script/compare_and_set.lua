-- The commit script for the commonest shape: every group is one string, read whole and set whole. It keeps the same
-- protocol as step.lua and gives the same answers, in half of the time.
--
-- KEYS  1..n the strings, n+1..2n their turn keys, the receipt, then strings that transactions still miss; only those if n is 0
-- ARGV  1 sequence of this commit   2 '' | 't' tell the time | the client's estimate in ms   3 process   4 turn ms
--       5 receipt ms   6 largest difference of clocks in ms   7 n   8.. four words for each string:
--   tag       s the string, d the digest of the process and the string, n nothing there; in capitals: ask for the turn if that is not so
--   expected  the string or the digest
--   value     what is set
--   life      '' until deleted | 'KEEPTTL' | the deadline in ms
-- Answer: as that of step.lua; or just n, if all were set and there is nothing else to tell.
local A, K, call = ARGV, KEYS, redis.call
local n, me = tonumber(A[7]), A[3]

local time = 0
if A[2] ~= '' then
  local t = call('TIME')
  time = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
  if A[2] ~= 't' and math.abs(time - tonumber(A[2])) > tonumber(A[6]) then return { time, 1, {}, {} } end
end

local turns = {}
if n > 1 then turns = redis.pcall('MGET', unpack(K, n + 1, n + n)) end
if n == 1 or turns.err then
  -- One, or our user may not MGET.
  turns = {}
  for i = 1, n do turns[i] = call('GET', K[n + i]) end
end

local answers, bits, set, p = {}, '', 0, 8
for i = 1, n do
  local tag, found, same = A[p], redis.pcall('GET', K[i]), false
  if tag == 's' or tag == 'S' then
    same = found == A[p + 1]
  elseif tag == 'n' or tag == 'N' then
    same = found == false
  else
    same = type(found) == 'string' and redis.sha1hex(me .. found) == A[p + 1]
  end
  if not same then
    if type(found) == 'table' then
      if string.sub(found.err, 1, 9) ~= 'WRONGTYPE' then return found end
      found = { 1, call('TYPE', K[i]).ok }
    end
    if tag == 'S' or tag == 'N' or tag == 'D' then redis.pcall('SET', K[n + i], me, 'NX', 'PX', A[4]) end
    answers[i], bits = { 1, { found } }, bits .. '0'
  elseif turns[i] and turns[i] ~= me then
    answers[i], bits = 2, bits .. '0'
  else
    answers[i], bits, set = 0, bits .. '1', set + 1
  end
  p = p + 4
end

local trouble = 0
if set > 0 then
  local receipt = K[n + n + 1]
  local before = redis.pcall('SET', receipt, A[1] .. ':' .. bits, 'PX', A[5], 'GET')
  if type(before) == 'table' then return before end
  if before == 'closed' then
    call('SET', receipt, before, 'PX', A[5])
    return { time, 2, {}, {} }
  end
  if not before and (A[2] == '' or A[2] == 't') then
    call('DEL', receipt)
    return { time, 2, {}, {} }
  end
  p = 8
  for i = 1, n do
    if answers[i] == 0 then
      if trouble ~= 0 then
        answers[i] = 5
      else
        local life, done = A[p + 3], nil
        if life == '' then done = redis.pcall('SET', K[i], A[p + 2])
        elseif life == 'KEEPTTL' then done = redis.pcall('SET', K[i], A[p + 2], life)
        else done = redis.pcall('SET', K[i], A[p + 2], 'PXAT', life) end
        if done.err then trouble = { 3, i, done.err } end
        if turns[i] then redis.pcall('DEL', K[n + i]) end
      end
    end
    p = p + 4
  end
end

-- Nothing was written: a replica would have answered too. As in step.lua, a write without effect tells.
if set == 0 and #K > 0 then
  local refused = redis.pcall('PEXPIREAT', K[1], '0', 'GT')
  if type(refused) == 'table' and string.sub(refused.err, 1, 8) == 'READONLY' then return refused end
end

if n > 0 and set == n and trouble == 0 and time == 0 and #K == n + n + 1 then return n end

-- After the writes, so that all of it is of one moment. Together where that is allowed; MGET gives nothing for another
-- type, so whatever it gives nothing for is looked at.
local fetched, before_fetches = {}, n > 0 and n + n + 1 or 0
for first = before_fetches + 1, #K, 1000 do
  local last = math.min(first + 999, #K)
  local many = redis.pcall('MGET', unpack(K, first, last))
  for i = first, last do
    local found = many[i - first + 1] or redis.pcall('GET', K[i])
    if type(found) == 'table' then
      if string.sub(found.err, 1, 9) == 'WRONGTYPE' then
        found = { 1, call('TYPE', K[i]).ok }
      else
        found = { 3, found.err }
      end
    end
    fetched[i - before_fetches] = found
  end
end
return { time, trouble, answers, fetched }
