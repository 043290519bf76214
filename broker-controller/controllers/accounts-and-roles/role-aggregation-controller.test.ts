import { test } from 'tap'
import type { ClusterRole } from '../../../api/access/cluster-role.ts'
import { systemClock } from '../../../daemon/clock.ts'
import { runLoops } from '../../../daemon/run.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { aggregatedRules, roleAggregationController } from './role-aggregation-controller.ts'

const role = (name: string, more: Partial<ClusterRole> & { labels?: { [key: string]: string } } = {}): ClusterRole => {
  const { labels, ...rest } = more
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name, ...(labels && { labels }) },
    ...rest,
  }
}
const reading = (resource: string) => ({ apiGroups: [''], resources: [resource], verbs: ['get'] })
const selecting = (...labels: readonly string[]) => ({
  aggregationRule: { clusterRoleSelectors: labels.map((label) => ({ matchLabels: { [label]: 'true' } })) },
})

test('an aggregated role has the rules of the roles that a selector selects, each once and in the order of names', async (t) => {
  const all = [
    role('z', { labels: { a: 'true' }, rules: [reading('pods'), reading('nodes')] }),
    role('b', { labels: { a: 'true', b: 'true' }, rules: [reading('pods')] }),
    role('other', { labels: { c: 'true' }, rules: [reading('secrets')] }),
    role('whole', { ...selecting('a', 'b'), labels: { a: 'true' }, rules: [reading('events')] }),
  ]
  t.same(aggregatedRules(role('whole', selecting('a', 'b')), all), [reading('pods'), reading('nodes')])
  t.same(aggregatedRules(role('empty', selecting('d')), all), [])
  t.equal(aggregatedRules(role('plain', { rules: [reading('pods')] }), all), undefined)
})

test('the controller keeps aggregated roles while the roles they select come, change and go', async (t) => {
  const store = memoryStore({ clock: systemClock })
  const log = quietLog(t)
  const stopping = new AbortController()
  const running = runLoops([roleAggregationController({ store, clock: systemClock, log })], stopping.signal, log)
  t.teardown(async () => {
    stopping.abort()
    await running
    await store.close()
  })
  const rulesOf = async (name: string) => (await store.get('clusterroles', { namespace: '', name }))?.rules
  const become = async (name: string, wanted: unknown) => {
    const late = Date.now() + 60_000
    while (JSON.stringify(await rulesOf(name)) !== JSON.stringify(wanted)) {
      if (Date.now() > late) return t.same(await rulesOf(name), wanted)
      await systemClock.sleep(10)
    }
  }
  await store.create('clusterroles', role('whole', selecting('a')))
  await store.create('clusterroles', role('outer', selecting('b')))
  await store.create('clusterroles', role('part', { labels: { a: 'true' }, rules: [reading('pods')] }))
  await become('whole', [reading('pods')])
  // An aggregated role may be a part of another.
  const whole = await store.get('clusterroles', { namespace: '', name: 'whole' })
  if (whole === undefined) throw new Error('whole is gone')
  await store.update('clusterroles', { ...whole, metadata: { ...whole.metadata, labels: { b: 'true' } } })
  await become('outer', [reading('pods')])
  await store.delete('clusterroles', { namespace: '', name: 'part' })
  await become('outer', [])
})
