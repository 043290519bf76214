import { test } from 'tap'
import { nodeIdentity } from '../../../api/identity.ts'
import type { Pod } from '../../../api/pod.ts'
import { aBudget, aPod, type BudgetOverrides, type PodOverrides } from '../../../api/testing/builders.ts'
import type { Store } from '../../store/store.ts'
import { anApi } from '../../testing/api-in-memory.ts'
import { evictedPod, evictionGrant } from './eviction-grant.ts'

const now = '2026-01-01T00:00:00Z'
const ready = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } as const
const web = (over: PodOverrides = {}) =>
  aPod({ name: 'web-1', labels: { app: 'web' }, nodeName: 'pi-1', status: ready, ...over })
const granted = (pod: Pod, ...budgets: readonly BudgetOverrides[]) =>
  evictionGrant(
    pod,
    budgets.map((over) => aBudget(over)),
    now,
  )

test('a pod that no budget selects may be evicted', async (t) => {
  t.match(granted(web()), { grant: 'free' })
  t.match(granted(web({ labels: { app: 'db' } }), {}), { grant: 'free' })
  t.match(granted(web(), { spec: { selector: undefined } as never }), { grant: 'free' }, 'a selector must be there')
  t.match(granted(web({ labels: {} }), { spec: { selector: {} } }), { grant: 'refused' }, 'an empty one means all')
})

test('a pod that is finished, pending or being deleted is evicted without its budget', async (t) => {
  for (const phase of ['Pending', 'Succeeded', 'Failed'] as const) {
    t.match(granted(web({ status: { phase } }), {}), { grant: 'free' }, phase)
  }
  t.match(granted(web({ metadata: { deletionTimestamp: now } }), {}), { grant: 'free' })
})

test('a disruption is taken from the budget, with the name of the pod', async (t) => {
  const status = { disruptionsAllowed: 2, disruptedPods: { 'web-0': now } }
  t.match(granted(web(), { status }), {
    grant: 'budget',
    budget: { status: { disruptionsAllowed: 1, disruptedPods: { 'web-0': now, 'web-1': now } } },
  })
})

test('a budget that is used up, not yet computed or invalid denies the eviction, each with its reason', async (t) => {
  const refusals: readonly [BudgetOverrides['status'], number, string | undefined, number | undefined][] = [
    [
      { desiredHealthy: 2, currentHealthy: 2 },
      429,
      'The disruption budget a-budget needs 2 healthy pods and has 2 currently',
      undefined,
    ],
    [
      { observedGeneration: 0, disruptionsAllowed: 1 },
      429,
      'The disruption budget a-budget is still being processed by the server.',
      10,
    ],
    [{ disruptionsAllowed: -1 }, 403, undefined, undefined],
    [
      {
        disruptionsAllowed: 1,
        disruptedPods: Object.fromEntries(Array.from({ length: 2001 }, (_, i) => [`p${i}`, now])),
      },
      403,
      undefined,
      undefined,
    ],
  ]
  for (const [status, code, cause, retryAfterSeconds] of refusals) {
    const grant = granted(web(), { status })
    if (grant.grant !== 'refused') return t.fail(`granted with ${JSON.stringify(status)}`)
    t.equal(grant.error.code, code)
    t.equal(grant.error.details?.causes?.[0]?.message, cause)
    t.equal(grant.error.details?.retryAfterSeconds, retryAfterSeconds)
  }
  t.match(granted(web(), { name: 'one' }, { name: 'two' }), {
    grant: 'refused',
    error: { code: 500, message: /more than one/ },
  })
})

test('an unready pod is evicted without its budget if enough others are healthy or the policy allows it', async (t) => {
  const ill = web({ status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] } })
  t.match(granted(ill, { status: { desiredHealthy: 2, currentHealthy: 2 } }), { grant: 'unready' })
  t.match(granted(ill, { status: { desiredHealthy: 2, currentHealthy: 1 } }), { grant: 'refused' })
  t.match(granted(ill, { status: { desiredHealthy: 0, currentHealthy: 1 } }), { grant: 'refused' })
  const spec = { selector: {}, unhealthyPodEvictionPolicy: 'AlwaysAllow' } as const
  t.match(granted(ill, { spec, status: { desiredHealthy: 2, currentHealthy: 1 } }), { grant: 'unready' })
})

const evictionOf = (name: string, deleteOptions?: object) => ({
  apiVersion: 'policy/v1',
  kind: 'Eviction',
  metadata: { name, namespace: 'default' },
  ...(deleteOptions && { deleteOptions }),
})
const path = '/api/v1/namespaces/default/pods/web-1'
const key = { namespace: 'default', name: 'web-1' }

async function running(store: Store) {
  const { metadata, ...pod } = web()
  const { resourceVersion: _, creationTimestamp: __, ...given } = metadata
  return store.create('pods', { ...pod, metadata: given })
}

test('an evicted pod has its grace period and DisruptionTarget, and its budget is updated', async (t) => {
  const { ask, store } = await anApi(t)
  await running(store)
  const { metadata, ...budget } = aBudget({ status: { disruptionsAllowed: 1 } })
  await store.create('poddisruptionbudgets', { ...budget, metadata: { name: 'b', namespace: 'default' } })
  const rehearsal = await ask('POST', `${path}/eviction`, { body: evictionOf('web-1', { dryRun: ['All'] }) })
  t.match(rehearsal, { code: 201, body: { kind: 'Status', status: 'Success' } })
  t.equal((await store.get('pods', key))?.metadata.deletionTimestamp, undefined)
  const answer = await ask('POST', `${path}/eviction`, { body: evictionOf('web-1', { gracePeriodSeconds: 5 }) })
  t.match(answer, { code: 201, body: { kind: 'Status', status: 'Success' } })
  t.match(await store.get('pods', key), {
    metadata: { deletionGracePeriodSeconds: 5 },
    status: { conditions: [{ type: 'Ready' }, { type: 'DisruptionTarget', reason: 'EvictionByEvictionAPI' }] },
  })
  t.match((await store.get('poddisruptionbudgets', { namespace: 'default', name: 'b' }))?.status, {
    disruptionsAllowed: 0,
    disruptedPods: { 'web-1': now },
  })
})

test('an eviction is of the pod it names, and of no other one of that name', async (t) => {
  const { ask, store } = await anApi(t)
  await running(store)
  const other = await ask('POST', `${path}/eviction`, { body: evictionOf('web-2') })
  t.match(other, { code: 400, body: { message: /name in URL/ } })
  const earlier = evictionOf('web-1', { preconditions: { uid: 'of an earlier one' } })
  t.match(await ask('POST', `${path}/eviction`, { body: earlier }), { code: 409 })
  t.match(await ask('POST', `${path}-gone/eviction`, { body: evictionOf('web-1-gone') }), { code: 404 })
  t.equal((await store.get('pods', key))?.metadata.deletionTimestamp, undefined)
})

test('a budget that is not yet computed asks the client to retry', async (t) => {
  const { ask, store } = await anApi(t)
  await running(store)
  const { status: _, metadata: __, ...budget } = aBudget()
  await store.create('poddisruptionbudgets', { ...budget, metadata: { name: 'b', namespace: 'default' } })
  t.match(await ask('POST', `${path}/eviction`, { body: evictionOf('web-1') }), {
    code: 429,
    retryAfterSeconds: 10,
    body: { reason: 'TooManyRequests', details: { retryAfterSeconds: 10, causes: [{ reason: 'DisruptionBudget' }] } },
  })
})

test('a node may evict only the pods bound to it', async (t) => {
  const { ask, store } = await anApi(t)
  await running(store)
  const body = evictionOf('web-1')
  t.match(await ask('POST', `${path}/eviction`, { body, as: nodeIdentity('pi-2') }), { code: 403 })
  t.match(await ask('POST', `${path}/eviction`, { body, as: nodeIdentity('pi-1') }), { code: 201 })
})

test('a pod that ended has no DisruptionTarget, one that runs has it once', async (t) => {
  const running = web()
  t.match(evictedPod(running, now).status?.conditions?.at(-1), {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'EvictionByEvictionAPI',
    lastTransitionTime: now,
  })
  const ended = web({ status: { phase: 'Failed' } })
  t.equal(evictedPod(ended, now), ended)
})

test('a budget keeps up with 2000 unconfirmed evictions, and a refusal names the budget', async (t) => {
  const unconfirmed = (length: number) =>
    granted(web(), {
      status: {
        disruptionsAllowed: 1,
        disruptedPods: Object.fromEntries(Array.from({ length }, (_, i) => [`p${i}`, now])),
      },
    })
  t.equal(unconfirmed(2000).grant, 'budget')
  t.match(unconfirmed(2001), {
    error: {
      reason: 'Forbidden',
      message: /^poddisruptionbudget.policy "a-budget" is forbidden: DisruptedPods map too big/,
      details: { name: 'a-budget', group: 'policy', kind: 'poddisruptionbudget' },
    },
  })
  const usedUp = granted(web(), { status: { disruptionsAllowed: 0 } })
  t.notOk(usedUp.grant === 'refused' && 'retryAfterSeconds' in (usedUp.error.details ?? {}))
})

test('a pod that reports nothing is pending, and a budget without a status allows nothing', async (t) => {
  const { status: _, ...unreported } = web()
  t.match(granted(unreported, {}), { grant: 'free' })
  const { status: __, ...budget } = aBudget()
  t.match(evictionGrant(web(), [budget], now), { grant: 'refused' })
  const { conditions: ___, ...silent } = { ...ready }
  t.match(granted(web({ status: silent }), { status: { desiredHealthy: 1, currentHealthy: 1 } }), { grant: 'unready' })
})
