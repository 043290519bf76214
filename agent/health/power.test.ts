import { test } from 'tap'
import { firmwareFlags, isUnderVoltageLine, thermalThrottling, underVoltage } from './power.ts'

const [now, before, never] = [
  { now: true, before: true },
  { now: false, before: true },
  { now: false, before: false },
]
const unmonitored = { underVoltage: undefined, throttling: undefined }

test('a supply that is too weak now is a problem; one that was has a remedy', async (t) => {
  const found = (seen: typeof now) => underVoltage({ ...unmonitored, underVoltage: seen })
  t.equal(underVoltage(unmonitored), undefined)
  t.match(found(now), { status: 'True', reason: 'SupplyTooWeak', remedy: /^Use the supply made for this board/ })
  t.match(found(before), { status: 'False', reason: 'SupplyWasTooWeak', remedy: /^Use the supply/ })
  t.match(found(never), { status: 'False', reason: 'SupplyIsEnough', remedy: undefined })
})

test('a processor that is slowed down now is a problem; one that was has a remedy', async (t) => {
  const found = (seen: typeof now, ...by: readonly string[]) =>
    thermalThrottling({ ...unmonitored, throttling: { ...seen, by } })
  t.equal(thermalThrottling(unmonitored), undefined)
  t.match(found(now, 'frequency capped', 'throttled'), {
    ...{ status: 'True', reason: 'ProcessorSlowedDown', remedy: /^Give it a heat sink/ },
    found: 'The processor is slowed down now (frequency capped, throttled)',
  })
  t.match(found(before), { status: 'False', reason: 'ProcessorWasSlowedDown', remedy: /^Give it a heat sink/ })
  t.match(found(never), { status: 'False', reason: 'ProcessorNotSlowedDown', remedy: undefined })
})

test('each flag of a Raspberry Pi’s firmware has its meaning', async (t) => {
  const flags = (...bits: readonly number[]) => firmwareFlags(bits.reduce((value, bit) => value + 2 ** bit, 0))
  t.same(flags(), { underVoltage: never, throttling: { ...never, by: [] } })
  t.same(flags(0), { underVoltage: now, throttling: { ...never, by: [] } })
  t.same(flags(16), { underVoltage: before, throttling: { ...never, by: [] } })
  t.same(flags(1).throttling, { ...now, by: ['frequency capped'] })
  t.same(flags(2).throttling, { ...now, by: ['throttled'] })
  t.same(flags(3).throttling, { ...now, by: ['soft temperature limit'] })
  for (const bit of [17, 18, 19]) t.same(flags(bit), { underVoltage: never, throttling: { ...before, by: [] } })
  t.same(firmwareFlags(0x50005), { underVoltage: now, throttling: { ...now, by: ['throttled'] } })
})

test('lines of the kernel report under-voltage', async (t) => {
  for (const line of [
    'hwmon hwmon1: Undervoltage detected!',
    'Under-voltage detected! (0x00050005)',
    'rpi_firmware_get_throttled: Under-voltage detected! (0x00050005)',
  ])
    t.ok(isUnderVoltageLine(line), line)
  for (const line of ['hwmon hwmon1: Voltage normalised', 'app: Undervoltage detected!', 'Undervoltage'])
    t.notOk(isUnderVoltageLine(line), line)
})
