-- One exchange of a process with the fleet's pool: the twin of abate_core::fleet::PoolCore, bit for bit. Doubles,
-- + - * / and rounding, in the same order. Tokens, slots and calls are millionths, times are microseconds, and all
-- of them whole and below 2^53. `now` is set by whatever stands above.
--
-- KEYS  the pool
-- ARGV  the terms: ratio (billionths), floor (per second), tau; the message: deposit, calls, want, generation, epoch

local MICRO, EPOCH, RATE_TAU, MOST = 1000000, 10000000, 3000000, 1125899906842624
local FORM = '>ddddddddd'

local ratio, floor, tau = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local deposit, calls, want = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local generation, epoch = tonumber(ARGV[7]), tonumber(ARGV[8])

local function decay(lapse)
  local kept = 1 / (1 + lapse / 64)
  for _ = 1, 6 do kept = kept * kept end
  return kept
end

local function whole(number, unit)
  return (number - number % unit) / unit
end

local stock, rate, level, load, at, began, counting, counted, before
local packed = redis.call('GET', KEYS[1])
if packed and #packed == 72 then
  stock, rate, level, load, at, began, counting, counted, before = struct.unpack(FORM, packed)
end
if not at or now - at > 6 * tau then
  stock, rate, level, load, at, began = floor, 0, 0, 0, now, now
  counting, counted, before = whole(now, EPOCH), 0, 0
end

local dt = math.max(0, now - at)
at = now

local kept = decay(dt / tau)
stock = math.floor(stock * kept + floor * (tau / MICRO) * (1 - kept))
stock = math.min(stock + math.min(deposit, MOST), MOST)
kept = decay(dt / RATE_TAU)
rate = math.min(math.floor(rate * kept + math.min(calls, MOST) / (RATE_TAU / MICRO)), MOST)
load = math.floor(load * kept + MICRO / (RATE_TAU / MICRO))

local present = whole(now, EPOCH)
if present ~= counting then
  before = (present == counting + 1 or present < counting) and counted or 0
  counting, counted = present, 0
end
if generation ~= began or epoch ~= present then counted = counted + 1 end
local processes = math.max(counted, before, 1)

local pace = math.floor(rate * ratio * 0.75 / 1e9) + floor
level = math.max(0, level - math.floor(dt * pace / MICRO))

local fair = math.max(MICRO, math.floor(stock * math.max(1 / 8, 1 / processes)))
local in_time = math.max(0, pace + MICRO - level)
local grant = math.min(whole(math.min(fair, stock, in_time), MICRO), want)
local first, gap = 0, MICRO
if pace > 0 then
  first, gap = math.ceil(level * MICRO / pace), math.ceil(MICRO * MICRO / pace)
end
level = level + grant * MICRO
stock = stock - grant * MICRO

packed = struct.pack(FORM, stock, rate, level, load, at, began, counting, counted, before)
redis.call('SET', KEYS[1], packed, 'PX', 6 * tau / 1000)
return { grant, first, gap, stock, processes, counting, began, load, now }
