import { test } from 'tap'
import type { Service } from '../../../api/network/service.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { finished } from '../../../daemon/watchdog/steps.ts'
import { mostReadInStep } from '../../testing/longest-step.ts'
import { triggerTime } from './trigger-times.ts'

const minute = (at: number) => `2026-01-01T00:${String(at).padStart(2, '0')}:00Z`
const service: Service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', creationTimestamp: minute(1) } }
const pod = (name: string, at?: number) => {
  const ready = { type: 'Ready', status: 'True' } as const
  const conditions = at === undefined ? [] : [{ ...ready, lastTransitionTime: minute(at) }]
  return aPod({ name, status: { conditions } })
}
const timeOf = (...given: Parameters<typeof triggerTime>) => finished(triggerTime(...given))

test('at the first visit it is the creation of the Service, whatever its pods did', async (t) => {
  t.equal(timeOf(service, [pod('a', 5)], undefined).time, minute(1))
  t.equal(timeOf({ ...service, metadata: { name: 'web' } }, [], undefined).time, undefined)
})

test('later it is the earliest change since the visit before', async (t) => {
  const { next } = timeOf(service, [pod('a', 2), pod('b', 3), pod('c')], undefined)
  t.equal(timeOf(service, [pod('a', 2), pod('b', 3)], next).time, undefined, 'nothing has changed')
  t.equal(timeOf(service, [pod('a', 9), pod('b', 8)], next).time, minute(8))
  t.equal(timeOf(service, [pod('a', 2), pod('c', 7)], next).time, minute(7), 'a pod that was not ready before')
  t.equal(timeOf(service, [pod('d', 2)], next).time, minute(2), 'a pod that is new')
  t.equal(timeOf(service, [], next).time, undefined, 'a pod that is gone has no time')
})

test('a Service that was made again is a change', async (t) => {
  const { next } = timeOf(service, [pod('a', 2)], undefined)
  const again = { ...service, metadata: { name: 'web', creationTimestamp: minute(6) } }
  t.equal(timeOf(again, [pod('a', 2)], next).time, minute(6))
  t.equal(timeOf(again, [pod('a', 5)], next).time, minute(5))
})

test('no step reads many pods', async (t) => {
  const pods = Array.from({ length: 4_000 }, (_, at) => pod(`p-${at}`, 1))
  const most = mostReadInStep(pods, (found) => triggerTime(service, found, undefined))
  t.ok(most <= 100, `${most} reads`)
})
