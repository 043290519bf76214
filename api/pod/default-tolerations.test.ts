import { test } from 'tap'
import type { Taint } from '../node.ts'
import type { Toleration } from '../pod.ts'
import { aPod } from '../testing/builders.ts'
import {
  defaultTolerationsAnnotation,
  isToleratedByDefault,
  withDefaultTolerations,
  withTolerationRecord,
  withTolerationRecordOf,
} from './default-tolerations.ts'

const notReady: Taint = { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }
const unreachable: Taint = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }
const defaults = withDefaultTolerations([])

const by = (taint: Taint, tolerations: readonly Toleration[], record?: string) =>
  isToleratedByDefault(
    taint,
    aPod({ tolerations, ...(record !== undefined && { annotations: { [defaultTolerationsAnnotation]: record } }) }),
  )

test('only what the record names is tolerated by default', async (t) => {
  t.ok(by(notReady, defaults, notReady.key))
  t.notOk(by(unreachable, defaults, notReady.key))
  t.notOk(by(unreachable, defaults, ''), 'the author stated it')
  t.ok(by(unreachable, defaults), 'from before the record')
  t.notOk(by({ key: 'repair', effect: 'NoExecute' }, [...defaults, { operator: 'Exists' }]))
})

test('the first toleration that matches decides, and it must be the default to the letter', async (t) => {
  const record = `${notReady.key},${unreachable.key}`
  t.notOk(by(unreachable, [{ operator: 'Exists', tolerationSeconds: 10 }, ...defaults], record))
  for (const change of [{ tolerationSeconds: 299 }, { operator: 'Equal' }, { effect: '' }, { value: 'x' }] as const) {
    const changed = defaults.map((toleration) => ({ ...toleration, ...change }) as Toleration)
    t.notOk(by(unreachable, changed, record), JSON.stringify(change))
  }
  const forEver = defaults.map(({ tolerationSeconds: _, ...toleration }) => toleration)
  t.notOk(by(unreachable, forEver, record))
  t.notOk(by(unreachable, [], record))
})

test('admission adds a toleration for each taint of the node lifecycle that the author left out', async (t) => {
  const seconds = 300
  const added = (key: string): Toleration => ({
    key,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: seconds,
  })
  t.same(defaults, [added(notReady.key), added(unreachable.key)])
  const own: Toleration = { key: notReady.key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 }
  const cases: readonly { stated: readonly Toleration[]; missing: readonly string[] }[] = [
    { stated: [own], missing: [unreachable.key] },
    { stated: [{ ...own, effect: '' }], missing: [unreachable.key] },
    { stated: [{ ...own, effect: 'NoSchedule' }], missing: [notReady.key, unreachable.key] },
    { stated: [{ operator: 'Exists' }], missing: [] },
    { stated: [{ operator: 'Exists', effect: 'NoSchedule' }], missing: [notReady.key, unreachable.key] },
    { stated: [{ key: 'camera', operator: 'Exists' }], missing: [notReady.key, unreachable.key] },
  ]
  for (const { stated, missing } of cases) {
    t.same(withDefaultTolerations(stated), [...stated, ...missing.map(added)], JSON.stringify(stated))
  }
})

const recordOf = (metadata: { readonly annotations?: { readonly [key: string]: string } }) =>
  metadata.annotations?.[defaultTolerationsAnnotation]
const claiming = (claim: string) => ({
  name: 'web',
  annotations: { team: 'shop', [defaultTolerationsAnnotation]: claim },
})
const both = `${notReady.key},${unreachable.key}`

test('the record names what admission adds, and of a claim only what would be added', async (t) => {
  const short = defaults.map((toleration) => ({ ...toleration, tolerationSeconds: 5 }))
  const [first] = defaults
  const some = first === undefined ? [] : [first]
  t.equal(recordOf(withTolerationRecord({ name: 'web' }, [])), both)
  t.equal(recordOf(withTolerationRecord({ name: 'web' }, some)), unreachable.key, 'the author stated the other one')
  t.equal(recordOf(withTolerationRecord({ name: 'web' }, defaults)), '', 'the author stated each')
  t.equal(recordOf(withTolerationRecord(claiming(both), defaults)), both, 'a copy of a pod')
  t.equal(recordOf(withTolerationRecord(claiming(unreachable.key), defaults)), unreachable.key)
  t.equal(recordOf(withTolerationRecord(claiming('camera'), defaults)), '')
  t.same(withTolerationRecord(claiming(both), short), { name: 'web', annotations: { team: 'shop' } }, 'a false claim')
  t.same(withTolerationRecord({ name: 'web' }, short), { name: 'web' }, 'nothing is default, nothing is recorded')
})

test('the record of a pod cannot be changed by who replaces the pod', async (t) => {
  t.equal(recordOf(withTolerationRecordOf(claiming(both), claiming(''))), both)
  t.equal(recordOf(withTolerationRecordOf(claiming(both), { name: 'web' })), both)
  t.same(withTolerationRecordOf({ name: 'web' }, claiming(both)), { name: 'web', annotations: { team: 'shop' } })
  const same = claiming(both)
  t.equal(withTolerationRecordOf(claiming(both), same), same)
})
