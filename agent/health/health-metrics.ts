/** The machine's health as metrics: what the agent's checks found, and the readings that alerts need. */
import { gauge, type MetricFamily, type MetricSample, one } from '../../daemon/prometheus-text.ts'
import type { MachineCondition } from '../node/status/conditions.ts'
import type { ClockReading } from './clock.ts'
import type { FlashDevice } from './storage.ts'

export type HealthFigures = {
  readonly conditions: readonly MachineCondition[]
  readonly flash: readonly FlashDevice[]
  readonly clock: Pick<ClockReading, 'synchronized' | 'controller'>
}

/** What this machine does not report is left out. */
export function* healthMetrics(figures: HealthFigures): Iterable<MetricFamily> {
  const { conditions, flash, clock } = figures
  yield gauge(
    'bramble_node_condition',
    'Health of the machine: 1 while there is evidence of the problem that the condition names.',
    conditions.map(({ type, status }) => ({ labels: { condition: type }, value: status === 'True' ? 1 : 0 })),
  )
  yield gauge(
    'bramble_flash_life_used_ratio',
    'Part of its life that the flash memory has used at most; more than 1: it is beyond its end.',
    flash.flatMap(lifeUsed),
  )
  yield gauge(
    'bramble_flash_spare_blocks_used_ratio',
    'Part of the spare blocks of the flash memory that is used at least.',
    flash.flatMap(sparesUsed),
  )
  const { synchronized, controller } = clock
  yield gauge(
    'node_timex_sync_status',
    '1 if the clock follows a time server.',
    one(synchronized === undefined ? undefined : synchronized ? 1 : 0),
  )
  yield gauge(
    'bramble_clock_ahead_of_controller_seconds',
    "How far the clock is ahead of the controller's.",
    one(controller?.isExact ? controller.aheadMs / 1000 : undefined),
  )
}

/** Steps of 10 % (JEDEC JESD84-B50, DEVICE_LIFE_TIME_EST): 0 is not reported, 11 more than the whole. */
function lifeUsed({ name, lifeTime }: FlashDevice): readonly MetricSample[] {
  const step = Math.max(0, ...lifeTime)
  return one(step === 0 ? undefined : step / 10, { device: name })
}

/** JEDEC JESD84-B50, PRE_EOL_INFO: 2 is 80 %, 3 is 90 %. */
function sparesUsed({ name, preEndOfLife }: FlashDevice): readonly MetricSample[] {
  const used = new Map([
    [1, 0],
    [2, 0.8],
    [3, 0.9],
  ]).get(preEndOfLife ?? 0)
  return one(used, { device: name })
}
