import { test } from 'tap'
import { metricsText } from '../../daemon/prometheus-text.ts'
import { readMetrics } from '../../daemon/testing/prometheus-parser.ts'
import { machineSensors } from '../adapters/kernel/machine-sensors.ts'
import { savedTree } from '../testing/saved-trees.ts'
import { type HealthFigures, healthMetrics } from './health-metrics.ts'

function metricsOf(figures: Partial<HealthFigures>) {
  const all: HealthFigures = {
    conditions: [],
    flash: [],
    clock: { synchronized: undefined, controller: undefined },
    ...figures,
  }
  const text = [...metricsText(healthMetrics(all))].join('')
  const families = text === '' ? undefined : readMetrics(text)
  return (name: string) => families?.get(name)?.samples
}

test('a worn Compute Module reports how much of its life is used', async (t) => {
  const metrics = metricsOf({ flash: machineSensors({ root: savedTree('compute-module-4-worn') }).flash() })
  t.match(metrics('bramble_flash_life_used_ratio'), [{ labels: { device: 'mmcblk0' }, value: Number }])
  t.ok((metrics('bramble_flash_life_used_ratio')?.[0]?.value ?? 0) >= 0.9)
})

test('steps of the standard are parts of a life', async (t) => {
  const flash = (lifeTime: readonly number[], preEndOfLife?: number) =>
    metricsOf({ flash: [{ name: 'mmcblk0', lifeTime, preEndOfLife }] })
  t.equal(flash([2, 3])('bramble_flash_life_used_ratio')?.[0]?.value, 0.3, 'the worse of two areas')
  t.equal(flash([11])('bramble_flash_life_used_ratio')?.[0]?.value, 1.1)
  t.equal(flash([0, 0])('bramble_flash_life_used_ratio'), undefined, 'not reported')
  t.equal(flash([])('bramble_flash_life_used_ratio'), undefined, 'a memory card')
  t.equal(flash([], 1)('bramble_flash_spare_blocks_used_ratio')?.[0]?.value, 0)
  t.equal(flash([], 3)('bramble_flash_spare_blocks_used_ratio')?.[0]?.value, 0.9)
  t.equal(flash([], 0)('bramble_flash_spare_blocks_used_ratio'), undefined, 'not reported')
})

test('each condition is 1 while there is evidence of its problem', async (t) => {
  const { power } = machineSensors({ root: savedTree('pi-4-weak-supply') })
  t.equal(power().underVoltage?.now, true)
  const facts = { reason: 'Any', message: 'any' }
  const metrics = metricsOf({
    conditions: [
      { type: 'UnderVoltage', status: 'True', ...facts },
      { type: 'StorageWear', status: 'False', ...facts },
    ],
  })
  t.same(metrics('bramble_node_condition'), [
    { labels: { condition: 'UnderVoltage' }, value: 1 },
    { labels: { condition: 'StorageWear' }, value: 0 },
  ])
})

test('the clock follows a time server, or not, or nothing on the machine reports it', async (t) => {
  const clock = (synchronized: boolean | undefined, aheadMs: number, isExact = true) =>
    metricsOf({ clock: { synchronized, controller: { aheadMs, isExact } } })
  t.equal(clock(true, 0)('node_timex_sync_status')?.[0]?.value, 1)
  t.equal(clock(false, 0)('node_timex_sync_status')?.[0]?.value, 0)
  t.equal(clock(undefined, 0)('node_timex_sync_status'), undefined)
  t.equal(clock(true, -90_500)('bramble_clock_ahead_of_controller_seconds')?.[0]?.value, -90.5)
  t.equal(clock(true, -90_500, false)('bramble_clock_ahead_of_controller_seconds'), undefined, 'a lower limit only')
})
