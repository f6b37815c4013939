-- The commit script for the commonest shape: every group is one string, read whole and set whole. It keeps
-- the protocol of commit.lua and gives the same answers, in half of the time.
--
-- KEYS  1..n the strings, n+1..2n their lease keys, the receipt, then strings that transactions still miss unless they are HIDDEN;
--       only those if n is 0
-- ARGV  SEQUENCE of this commit   TIME '' | 't' return the time | the client's estimate in ms   PROCESS   LEASE_MS
--       RECEIPT_MS   ALLOWANCE_MS largest difference of the clocks   COUNT n   HIDDEN number of missed strings that are no KEYS
--       PROBE '' or a key for a write without effect   then four words for each string, then the hidden keys:
--   TAG       s the string, d the digest of PROCESS and the string, n absent; in capitals: take a lease if that is not so
--   EXPECTED  the string or the digest
--   VALUE     the new string
--   EXPIRY    '' never | 'KEEPTTL' | the deadline in ms | '+' and the deadline in ms that the key gets if it has none
-- Answer: as that of commit.lua; or just n, if all were set and there is nothing else to return.

-- The numbers of the protocol. A test compares them with layout.rs.
local ARG_SEQUENCE, ARG_TIME, ARG_PROCESS, ARG_LEASE_MS, ARG_RECEIPT_MS, ARG_ALLOWANCE_MS, ARG_COUNT = 1, 2, 3, 4, 5, 6, 7
local ARG_HIDDEN, ARG_PROBE, ARG_STRINGS = 8, 9, 10
local STRING_TAG, STRING_EXPECTED, STRING_VALUE, STRING_EXPIRY, STRING_LENGTH = 0, 1, 2, 3, 4
local STATUS_DONE, STATUS_CLOCKS_DIFFER, STATUS_SEQUENCE_CLOSED, STATUS_PARTIAL = 0, 1, 2, 3
local ANSWER_COMMITTED, ANSWER_STALE, ANSWER_LEASED, ANSWER_NOT_BEGUN = 0, 1, 2, 5
local REPLY_WRONG_TYPE, REPLY_ERROR = 1, 3

local A, K, call = ARGV, KEYS, redis.call
local n, me, estimate = tonumber(A[ARG_COUNT]), A[ARG_PROCESS], A[ARG_TIME]
-- The strings that transactions still miss are the last ones of this list.
local F, before_fetches = K, n > 0 and n + n + 1 or 0
if A[ARG_HIDDEN] ~= '0' then F, before_fetches = A, ARG_STRINGS + STRING_LENGTH * n - 1 end
local fetches = #F - before_fetches

local time = 0
if estimate ~= '' then
  local t = call('TIME')
  time = tonumber(t[1]) * 1000000 + tonumber(t[2])
  if estimate ~= 't' and math.abs(math.floor(time / 1000) - tonumber(estimate)) > tonumber(A[ARG_ALLOWANCE_MS]) then
    return { time, STATUS_CLOCKS_DIFFER, {}, {} }
  end
end

local owners = {}
if n > 1 then owners = redis.pcall('MGET', unpack(K, n + 1, n + n)) end
if n == 1 or owners.err then
  -- One, or our user may not MGET.
  owners = {}
  for i = 1, n do owners[i] = call('GET', K[n + i]) end
end

local answers, bits, set, p = {}, '', 0, ARG_STRINGS
for i = 1, n do
  local tag, found, same = A[p + STRING_TAG], redis.pcall('GET', K[i]), false
  if tag == 's' or tag == 'S' then
    same = found == A[p + STRING_EXPECTED]
  elseif tag == 'n' or tag == 'N' then
    same = found == false
  else
    same = type(found) == 'string' and redis.sha1hex(me .. found) == A[p + STRING_EXPECTED]
  end
  if not same then
    if type(found) == 'table' then
      if string.sub(found.err, 1, 9) ~= 'WRONGTYPE' then return found end
      found = { REPLY_WRONG_TYPE, call('TYPE', K[i]).ok }
    end
    if tag == 'S' or tag == 'N' or tag == 'D' then redis.pcall('SET', K[n + i], me, 'NX', 'PX', A[ARG_LEASE_MS]) end
    answers[i], bits = { ANSWER_STALE, { found } }, bits .. '0'
  elseif owners[i] and owners[i] ~= me then
    answers[i], bits = ANSWER_LEASED, bits .. '0'
  else
    answers[i], bits, set = ANSWER_COMMITTED, bits .. '1', set + 1
  end
  p = p + STRING_LENGTH
end

local trouble = STATUS_DONE
if set > 0 then
  local receipt = K[n + n + 1]
  local before = redis.pcall('SET', receipt, A[ARG_SEQUENCE] .. ':' .. bits, 'PX', A[ARG_RECEIPT_MS], 'GET')
  if type(before) == 'table' then return before end
  if before == 'closed' then
    call('SET', receipt, before, 'PX', A[ARG_RECEIPT_MS])
    return { time, STATUS_SEQUENCE_CLOSED, {}, {} }
  end
  if not before and (estimate == '' or estimate == 't') then
    call('DEL', receipt)
    return { time, STATUS_SEQUENCE_CLOSED, {}, {} }
  end
  p = ARG_STRINGS
  for i = 1, n do
    if answers[i] == ANSWER_COMMITTED then
      if trouble ~= STATUS_DONE then
        answers[i] = ANSWER_NOT_BEGUN
      else
        local expiry, done = A[p + STRING_EXPIRY], nil
        if expiry == '' then done = redis.pcall('SET', K[i], A[p + STRING_VALUE])
        elseif expiry == 'KEEPTTL' then done = redis.pcall('SET', K[i], A[p + STRING_VALUE], expiry)
        elseif string.sub(expiry, 1, 1) == '+' then
          done = redis.pcall('SET', K[i], A[p + STRING_VALUE], 'KEEPTTL')
          local expires = redis.pcall('PEXPIREAT', K[i], string.sub(expiry, 2), 'NX')
          if type(expires) == 'table' then done = expires end
        else done = redis.pcall('SET', K[i], A[p + STRING_VALUE], 'PXAT', expiry) end
        if done.err then trouble = { STATUS_PARTIAL, i, done.err } end
        if owners[i] then redis.pcall('DEL', K[n + i]) end
      end
    end
    p = p + STRING_LENGTH
  end
end

-- Nothing was written, so a replica would have answered too. As in commit.lua, it refuses a write without
-- effect, of a key of the engine.
local probe = n > 0 and K[n + n + 1] or A[ARG_PROBE]
if set == 0 and probe ~= '' then
  local refused = redis.pcall('PEXPIREAT', probe, '0', 'GT')
  if type(refused) == 'table' and string.sub(refused.err, 1, 8) == 'READONLY' then return refused end
end

if n > 0 and set == n and trouble == STATUS_DONE and time == 0 and fetches == 0 then return n end

-- After the writes, so that all replies are of one moment. By MGET where our user may; MGET returns nil for a
-- wrong type, so each nil is read again by GET.
local fetched = {}
for first = before_fetches + 1, #F, 1000 do
  local last = math.min(first + 999, #F)
  local many = redis.pcall('MGET', unpack(F, first, last))
  for i = first, last do
    local found = many[i - first + 1] or redis.pcall('GET', F[i])
    if type(found) == 'table' then
      if string.sub(found.err, 1, 9) == 'WRONGTYPE' then
        found = { REPLY_WRONG_TYPE, call('TYPE', F[i]).ok }
      else
        found = { REPLY_ERROR, found.err }
      end
    end
    fetched[i - before_fetches] = found
  end
end
return { time, trouble, answers, fetched }
