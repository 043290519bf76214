import { test } from 'tap'
import type { Service } from '../../../api/network/service.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { triggerTime } from './trigger-times.ts'

const minute = (at: number) => `2026-01-01T00:${String(at).padStart(2, '0')}:00Z`
const service: Service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', creationTimestamp: minute(1) } }
const pod = (name: string, at?: number) => {
  const ready = { type: 'Ready', status: 'True' } as const
  const conditions = at === undefined ? [] : [{ ...ready, lastTransitionTime: minute(at) }]
  return aPod({ name, status: { conditions } })
}

test('at the first visit it is the creation of the Service, whatever its pods did', async (t) => {
  t.equal(triggerTime(service, [pod('a', 5)], undefined).time, minute(1))
  t.equal(triggerTime({ ...service, metadata: { name: 'web' } }, [], undefined).time, undefined)
})

test('later it is the earliest change since the visit before', async (t) => {
  const { next } = triggerTime(service, [pod('a', 2), pod('b', 3), pod('c')], undefined)
  t.equal(triggerTime(service, [pod('a', 2), pod('b', 3)], next).time, undefined, 'nothing has changed')
  t.equal(triggerTime(service, [pod('a', 9), pod('b', 8)], next).time, minute(8))
  t.equal(triggerTime(service, [pod('a', 2), pod('c', 7)], next).time, minute(7), 'a pod that was not ready before')
  t.equal(triggerTime(service, [pod('d', 2)], next).time, minute(2), 'a pod that is new')
  t.equal(triggerTime(service, [], next).time, undefined, 'a pod that is gone has no time')
})

test('a Service that was made again is a change', async (t) => {
  const { next } = triggerTime(service, [pod('a', 2)], undefined)
  const again = { ...service, metadata: { name: 'web', creationTimestamp: minute(6) } }
  t.equal(triggerTime(again, [pod('a', 2)], next).time, minute(6))
  t.equal(triggerTime(again, [pod('a', 5)], next).time, minute(5))
})
