import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { finished } from '../../../daemon/watchdog/steps.ts'
import { workloadWorld } from '../../testing/workload-world.ts'
import { claimStep } from './controller-ref.ts'
import { podControl } from './pod-control.ts'
import { isAvailablePod, nextAvailableMs } from './pod-readiness.ts'
import { slowStart } from './slow-start.ts'

const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'u', controller: true }

test('a controller adopts what it selects, and releases what it selects no longer', async (t) => {
  const claimant = { metadata: { uid: 'u', namespace: 'default' } }
  const own = aPod({ metadata: { ownerReferences: [owner] } })
  const others = aPod({ metadata: { ownerReferences: [{ ...owner, uid: 'x' }] } })
  t.equal(claimStep(claimant, own, true), 'owned')
  t.equal(claimStep(claimant, own, false), 'release')
  t.equal(claimStep(claimant, others, true), 'ignore')
  t.equal(claimStep(claimant, aPod(), true), 'adopt')
  t.equal(claimStep(claimant, aPod(), false), 'ignore')
  t.equal(claimStep(claimant, aPod({ namespace: 'other' }), true), 'ignore')
  t.equal(claimStep(claimant, aPod({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }), true), 'ignore')
  const leaving = { metadata: { ...claimant.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }
  t.equal(claimStep(leaving, aPod(), true), 'ignore', 'an owner that is being deleted adopts nothing')
  t.equal(claimStep(leaving, own, false), 'ignore', 'and releases nothing')
  t.equal(claimStep(leaving, own, true), 'owned')
})

test('writes start slowly and stop at the first batch with an error', async (t) => {
  const calls: number[] = []
  const until = (last: number) => async (index: number) => {
    calls.push(index)
    if (index > last) throw new Error(`no ${index}`)
    return true
  }
  t.same(await slowStart(10, until(99)), { done: 10, error: undefined })
  t.equal(calls.length, 10)
  calls.length = 0
  t.match(await slowStart(100, until(-1)), { done: 0, error: { message: 'no 0' } })
  t.equal(calls.length, 1, 'a quota that is used up is asked once')
  calls.length = 0
  t.match(await slowStart(100, until(4)), { done: 5, error: { message: 'no 5' } })
  t.same(calls, [0, 1, 2, 3, 4, 5, 6])
  t.same(await slowStart(0, until(0)), { done: 0, error: undefined })
  calls.length = 0
  const useless = async (index: number) => calls.push(index) < 0
  t.same(await slowStart(100, useless), { done: 0, error: undefined })
  t.equal(calls.length, 1, 'a namespace that is being deleted is asked once')
})

test('a pod is available when it has been ready for longer than minReadySeconds', async (t) => {
  const at = (text: string) => Date.parse(text)
  const lastTransitionTime = '2026-01-01T00:00:00Z'
  const ready = aPod({ status: { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime }] } })
  t.ok(isAvailablePod(ready, 0, 0))
  t.notOk(isAvailablePod(ready, 10, at('2026-01-01T00:00:10Z')))
  t.ok(isAvailablePod(ready, 10, at('2026-01-01T00:00:11Z')))
  t.notOk(isAvailablePod(aPod(), 0, at('2026-01-01T00:00:10Z')))
  t.equal(finished(nextAvailableMs([aPod(), ready], 10, at('2026-01-01T00:00:03Z'))), at('2026-01-01T00:00:10Z'))
  t.equal(finished(nextAvailableMs([aPod(), ready], 10, at('2026-01-01T00:00:11Z'))), undefined)
})

test('pods of a template are admitted like those of a client, and named after their owner', async (t) => {
  const world = await workloadWorld(t)
  const control = podControl(world.needs, 'replicaset-controller')
  const template = {
    metadata: { labels: { app: 'web' }, annotations: { a: 'b' } },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  }
  const set = await world.store.create('replicasets', {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: 'web', namespace: 'default' },
    spec: { selector: { matchLabels: { app: 'web' } }, template },
  })
  const pod = await control.create(set, template)
  t.match(pod, {
    metadata: {
      name: /^web-[a-z0-9]{5}$/,
      labels: { app: 'web' },
      annotations: { a: 'b' },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', uid: set.metadata.uid, blockOwnerDeletion: true }],
    },
    spec: { serviceAccountName: 'default', restartPolicy: 'Always', tolerations: { length: 2 } },
    status: { phase: 'Pending' },
  })
  t.equal(pod?.metadata.managedFields, undefined)
  await control.delete(set, pod as NonNullable<typeof pod>)
  await t.rejects(control.create(set, { ...template, spec: { containers: [] } }), /is invalid/)
  t.same(await world.events(), ['SuccessfulCreate', 'SuccessfulDelete', 'FailedCreate'])
  const namespace = await world.store.get('namespaces', { namespace: '', name: 'default' })
  const deletionTimestamp = '2026-01-01T00:00:00Z'
  if (namespace) {
    await world.store.update('namespaces', { ...namespace, metadata: { ...namespace.metadata, deletionTimestamp } })
  }
  t.equal(await control.create(set, template), undefined, 'a namespace that goes gets no pods and no Event')
  t.equal((await world.events()).length, 3)
})
