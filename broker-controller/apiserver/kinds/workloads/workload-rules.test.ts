import { test } from 'tap'
import { problemText } from '../../../../api/problem.ts'
import { selectorChangeProblems, withUpdateDefaults } from './workload-rules.ts'

test('an update is rolling, within the limits of its kind, unless its author wants another one', async (t) => {
  const limits = { maxUnavailable: '25%', maxSurge: '25%' }
  const rolling = (rollingUpdate: object) => ({ type: 'RollingUpdate', rollingUpdate })
  t.same(withUpdateDefaults(undefined, limits), rolling(limits))
  t.same(withUpdateDefaults({}, limits), rolling(limits))
  t.same(withUpdateDefaults({ type: '' }, limits), rolling(limits))
  t.same(
    withUpdateDefaults({ rollingUpdate: { maxSurge: 0 } }, limits),
    rolling({ maxUnavailable: '25%', maxSurge: 0 }),
  )
  t.same(
    withUpdateDefaults(rolling({ maxUnavailable: 1, maxSurge: 2 }), limits),
    rolling({ maxUnavailable: 1, maxSurge: 2 }),
  )
  t.same(withUpdateDefaults({ type: 'OnDelete' }, limits), { type: 'OnDelete' })
  const odd = { type: 'Recreate', rollingUpdate: { maxSurge: 1 } }
  t.same(withUpdateDefaults(odd, limits), odd, 'what does not belong to the type is refused elsewhere')
})

test('the selector of a workload stays', async (t) => {
  const changed = (old: object | undefined, now: object | undefined) =>
    selectorChangeProblems(
      { spec: { ...(old && { selector: old }) } },
      { spec: { ...(now && { selector: now }) } },
    ).map(problemText)
  const [web, db] = [{ matchLabels: { app: 'web' } }, { matchLabels: { app: 'db' } }]
  t.same(changed(web, { matchLabels: { app: 'web' } }), [])
  t.same(changed(undefined, undefined), [])
  t.same(changed(web, db), ['spec.selector: Invalid value: {"matchLabels":{"app":"db"}}: field is immutable'])
  t.same(changed(undefined, web).length, 1)
  t.same(changed(web, undefined).length, 1)
})
