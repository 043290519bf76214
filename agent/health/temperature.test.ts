import { test } from 'tap'
import { highTemperature, type TemperatureReading } from './temperature.ts'

const zone = (celsius: number, ...trips: readonly [kind: string, celsius: number][]) => ({
  name: 'cpu-thermal',
  celsius,
  trips: trips.map(([kind, at]) => ({ kind, celsius: at })),
})
const pi = 'Raspberry Pi 4 Model B Rev 1.4'
const reading = (zones: TemperatureReading['zones'], board?: string): TemperatureReading => ({ zones, board })

test('a zone is too hot at the lowest of its limits', async (t) => {
  for (const [what, given, configured, status] of [
    ['no zone', reading([]), undefined, undefined],
    ['no limit is known', reading([zone(200)]), undefined, undefined],
    ['a limit that only slows it down', reading([zone(200, ['passive', 60])]), undefined, undefined],
    ['below its limit', reading([zone(89.9, ['hot', 90])]), undefined, 'False'],
    ['at its limit', reading([zone(90, ['hot', 90])]), undefined, 'True'],
    ['ten degrees before the kernel switches it off', reading([zone(100, ['critical', 110])]), undefined, 'True'],
    ['eleven degrees before', reading([zone(99, ['critical', 110])]), undefined, 'False'],
    ['the lower of both', reading([zone(90, ['hot', 90], ['critical', 110])]), undefined, 'True'],
    ['a Raspberry Pi throttles at 80', reading([zone(80, ['critical', 110])], pi), undefined, 'True'],
    ['a Raspberry Pi without limits in its files', reading([zone(80)], pi), undefined, 'True'],
    ['a Raspberry Pi with a lower limit', reading([zone(75, ['hot', 70])], pi), undefined, 'True'],
    ['below 80 on a Raspberry Pi', reading([zone(79, ['critical', 110])], pi), undefined, 'False'],
    ['a configured limit', reading([zone(60, ['hot', 90])]), 60, 'True'],
    ['a configured limit above that of the hardware', reading([zone(95, ['hot', 90])]), 100, 'False'],
    ['a configured limit of a zone without one', reading([zone(60)]), 60, 'True'],
    ['one of several', reading([zone(20, ['hot', 90]), zone(95, ['hot', 90])]), undefined, 'True'],
  ] as const) {
    t.equal(highTemperature(given, configured, false)?.status, status, what)
  }
})

test('what was too hot is not normal again before it has cooled down by five degrees', async (t) => {
  const at = (celsius: number) => highTemperature(reading([zone(celsius, ['hot', 90])]), undefined, true)?.status
  t.equal(at(85), 'True')
  t.equal(at(84.9), 'False')
})

test('the finding names the zone and its limit', async (t) => {
  const found = highTemperature(reading([zone(95, ['hot', 90]), zone(20, ['hot', 90])]), undefined, false)
  t.equal(found?.found, 'Too hot: cpu-thermal (limit 90 °C)')
})
