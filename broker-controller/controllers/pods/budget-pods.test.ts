import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { budgetPods } from './budget-pods.ts'

const pod = (name: string, { status = 'True', owner = '' } = {}) => {
  const made = aPod({ name, status: { conditions: [{ type: 'Ready', status: status as 'True' }] } })
  const reference = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: owner, uid: owner, controller: true }
  return { ...made, metadata: { ...made.metadata, ...(owner !== '' && { ownerReferences: [reference] }) } }
}
const seen = (pods: ReturnType<typeof budgetPods>) => ({
  size: pods.size,
  healthy: pods.healthy,
  uncontrolled: pods.uncontrolled,
  controllers: [...pods.controllers()].map(({ reference, count }) => `${reference.uid} ${count}`),
})

test('pods are counted as they come, change and go', async (t) => {
  const pods = budgetPods()
  pods.set(pod('a'))
  pods.set(pod('b', { status: 'False', owner: 'web' }))
  pods.set(pod('c', { owner: 'web' }))
  t.same(seen(pods), { size: 3, healthy: 2, uncontrolled: 1, controllers: ['web 2'] })
  pods.set(pod('a', { owner: 'web' }))
  pods.set(pod('c', { status: 'False', owner: 'other' }))
  t.same(seen(pods), { size: 3, healthy: 1, uncontrolled: 0, controllers: ['web 2', 'other 1'] })
  t.ok(pods.delete('a'))
  t.notOk(pods.delete('a'), 'it is gone')
  t.ok(pods.delete('b'))
  t.same(seen(pods), { size: 1, healthy: 0, uncontrolled: 0, controllers: ['other 1'] })
  t.equal(pods.get('c')?.metadata.name, 'c')
})

test('a pod that is leaving is not healthy', async (t) => {
  const pods = budgetPods()
  const leaving = pod('a')
  pods.set({ ...leaving, metadata: { ...leaving.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } })
  t.match(seen(pods), { size: 1, healthy: 0 })
})
