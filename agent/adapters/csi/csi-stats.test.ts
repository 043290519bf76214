import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { PodEvent } from '../../pods/record/pod-events.ts'
import { csiDriver } from '../../testing/csi-driver.ts'
import { until } from '../../testing/until.ts'
import { csiClient } from './csi-client.ts'
import { csiRecords } from './csi-records.ts'
import { csiStats } from './csi-stats.ts'

const bytes = { available: 60, total: 100, used: 40 }
const inodes = { available: 5, total: 9, used: 4 }
const usage = [
  { ...bytes, unit: 1 },
  { ...inodes, unit: 2 },
]

async function measuring(t: { teardown(end: () => Promise<void>): void; fail(message: string): unknown }) {
  const kubelet = await mkdtemp(join(tmpdir(), 'csi-'))
  const driver = await csiDriver(kubelet, { capabilities: [1, 2, 4] })
  const client = csiClient(driver.endpoint, 60_000)
  const registered = { client, capabilities: await client.capabilities() }
  const records = csiRecords(kubelet, 'a')
  const volume = { podUID: 'p', driver: 'disk.example.com', pod: 'shop/db' }
  await records.writePublished({ ...volume, volume: 'pv', handle: 'h', claim: 'shop/data' })
  await records.writePublished({ ...volume, volume: 'cache', handle: 'i', isInline: true })
  const [clock, log, stop] = [fakeClock(), quietLog(t), new AbortController()]
  const events: unknown[] = []
  const has = { drivers: true }
  const loop = csiStats({
    ...{ records, clock, log, hasDrivers: () => has.drivers },
    driver: (name) => (name === 'disk.example.com' ? registered : undefined),
    events: { ofPod: (pod, event: PodEvent) => void events.push([pod, event]) },
  })
  const running = loop.run(stop.signal)
  t.teardown(async () => {
    stop.abort()
    await running
    await driver.close()
    await rm(kubelet, { recursive: true, force: true })
  })
  const calls = () => driver.calls.filter(({ name }) => name === 'NodeGetVolumeStats')
  /** `count`: of the calls after it. */
  const minute = async (count: number) => {
    await clock.advance(60_000)
    await until('the driver is asked', () => calls().length === count)
  }
  return { driver, loop, events, minute, calls, clock, has, log }
}

test('a driver is asked once a minute about the volumes of pods', async (t) => {
  const { driver, loop, minute, calls } = await measuring(t)
  driver.stats({ usage })
  t.same(loop.measured(), [])
  await minute(2)
  await until('the figures are there', () => loop.measured().length === 2)
  const figures = [...loop.measured()].sort((a, b) => (a.volume < b.volume ? -1 : 1))
  t.match(figures, [
    { podUID: 'p', volume: 'cache', bytes, inodes },
    { podUID: 'p', volume: 'pv', claim: 'shop/data', bytes, inodes, condition: undefined },
  ])
  const asked = calls().map(({ request }) => [request['volumeId'], request['stagingTargetPath'] !== ''])
  t.same(asked.sort(), [
    ['h', true],
    ['i', false],
  ])
})

test('a volume that is not in order is an Event of its pod, once for each reason', async (t) => {
  const { driver, loop, events, minute } = await measuring(t)
  driver.stats({ usage, condition: { abnormal: true, message: 'disk lost' } })
  await minute(2)
  await until('the Events are there', () => events.length === 2)
  t.match(
    events.find((one) => /Volume pv/.test(JSON.stringify(one))),
    [
      { namespace: 'shop', name: 'db', uid: 'p' },
      { type: 'Warning', reason: 'VolumeConditionAbnormal', message: 'Volume pv: disk lost' },
    ],
  )
  await minute(4)
  driver.stats({ usage, condition: { abnormal: false, message: '' } })
  await minute(6)
  await until('it is well', () => loop.measured().every(({ condition }) => condition?.abnormal === false))
  t.equal(events.length, 2)
  driver.stats({ usage, condition: { abnormal: true, message: 'disk lost' } })
  await minute(8)
  await until('it is an Event again', () => events.length === 4)
})

test('a driver that refuses has no figures, and is logged once; a machine without drivers asks nothing', async (t) => {
  const { driver, loop, minute, log, has, clock, calls } = await measuring(t)
  driver.fail('NodeGetVolumeStats', 13, 'no')
  await minute(1)
  await minute(2)
  await until('it is logged', () => log.messages('warn').length > 0)
  t.equal(log.messages('warn').length, 1)
  t.same(loop.measured(), [])
  has.drivers = false
  await clock.advance(120_000)
  t.equal(calls().length, 2)
})
