import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { ensureFleetObjects, ensureNamespaces } from '../assembly/bootstrap-objects.ts'
import { memoryStore } from '../store/memory-store.ts'
import { standardChecks } from './standard-checks.ts'
import { type ReadinessCheck, sharedCheck } from './system-paths.ts'

const hooks = [
  'poststarthook/start-system-namespaces-controller',
  'poststarthook/rbac/bootstrap-roles',
  'poststarthook/scheduling/bootstrap-system-priority-classes',
  'poststarthook/priority-and-fairness-config-producer',
]

test('the checks have the names of Kubernetes; the store is etcd to clients', (t) => {
  const clock = fakeClock()
  const names = (isEtcd: boolean) =>
    standardChecks({ store: memoryStore({ clock }), clock, isEtcd, isLeftForLater: () => false }).map(
      ({ name }) => name,
    )
  t.same(names(false), ['etcd', 'informer-sync', ...hooks])
  t.same(names(true), ['informer-sync', ...hooks])
  t.end()
})

test('hooks pass once the objects of the fleet are there, and stay so', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const checks = standardChecks({ store, clock, isEtcd: false, isLeftForLater: () => false })
  const failing = async () => {
    const results = await Promise.all(
      checks.map(({ name, check }) =>
        check().then(
          () => [],
          () => [name],
        ),
      ),
    )
    return results.flat()
  }
  t.same(await failing(), hooks)
  await ensureFleetObjects(store, clock)
  t.same(await failing(), [])
  await store.delete('priorityclasses', { namespace: '', name: 'system-node-critical' })
  t.same(await failing(), [])
})

test('what a full store refused, or the leader has to make, does not fail hooks, but for the namespaces', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  let isLeft = true
  const checks = standardChecks({ store, clock, isEtcd: true, isLeftForLater: () => isLeft })
  const failing = async () => {
    const results = await Promise.allSettled(checks.map(({ check }) => check()))
    return checks.flatMap(({ name }, index) => (results[index]?.status === 'rejected' ? [name] : []))
  }
  t.same(await failing(), ['poststarthook/start-system-namespaces-controller'])
  await ensureNamespaces(store)
  t.same(await failing(), [])
  isLeft = false
  t.same(await failing(), hooks.slice(1), 'it was not remembered as made')
})

test('a store that does not answer fails them in time, and never livez', async (t) => {
  const clock = fakeClock()
  const silent = { get: () => new Promise<never>(() => undefined), version: () => new Promise<never>(() => undefined) }
  const checks = standardChecks({ store: silent, clock, isEtcd: false, isLeftForLater: () => false })
  const results = Promise.all(checks.map(({ check }) => check().then(() => 'ok', String)))
  await clock.advance(2_000)
  for (const result of await results) t.match(result, 'no answer within 2 s')
  t.same(
    checks.filter(({ of = [] }) => of.includes('livez')),
    [],
  )
})

test('any number of requests within half a second has one result, and the next one another', async (t) => {
  const clock = fakeClock()
  let asked = 0
  let name = 'standby'
  const check: ReadinessCheck = {
    get name() {
      return name
    },
    of: ['readyz'],
    async check() {
      asked++
      if (asked === 2) throw new Error('no controller leads')
    },
    warnings: () => ['soon full'],
  }
  const shared = sharedCheck(check, clock)
  t.match(shared, { name: 'standby', of: ['readyz'] })
  t.same(shared.warnings?.(), ['soon full'])
  await Promise.all(Array.from({ length: 100 }, () => shared.check()))
  t.equal(asked, 1)
  await clock.advance(500)
  await t.rejects(Promise.all([shared.check(), shared.check()]), /no controller leads/)
  await t.rejects(shared.check(), /no controller leads/)
  t.equal(asked, 2)
  await clock.advance(500)
  name = 'leading'
  await shared.check()
  t.equal(asked, 3)
  t.equal(shared.name, 'leading')
})
