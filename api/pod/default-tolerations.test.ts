import { test } from 'tap'
import type { Taint } from '../node.ts'
import type { Toleration } from '../pod.ts'
import { aPod } from '../testing/builders.ts'
import { defaultTolerationsAnnotation, isToleratedByDefault, withDefaultTolerations } from './default-tolerations.ts'

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
