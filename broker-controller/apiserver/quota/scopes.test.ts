import { test } from 'tap'
import { resources } from '../../../api/resources.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { isInScope } from './scopes.ts'

const holds = (scopeName: string, pod: ReturnType<typeof aPod>, operator = 'Exists', values?: readonly string[]) =>
  isInScope(resources.pods, pod, [{ scopeName, operator, ...(values && { values }) }])
const term = { topologyKey: 'kubernetes.io/hostname' }
const anObject = { apiVersion: 'v1', kind: 'Secret', metadata: {} }

test('a pod with a deadline is terminating', async (t) => {
  const [bounded, endless] = [aPod({ spec: { activeDeadlineSeconds: 0 } }), aPod()]
  t.same([holds('Terminating', bounded), holds('NotTerminating', bounded)], [true, false])
  t.same([holds('Terminating', endless), holds('NotTerminating', endless)], [false, true])
})

test('a pod without requests and limits is best effort', async (t) => {
  const [best, other] = [aPod(), aPod({ requests: { cpu: '1' } })]
  t.same([holds('BestEffort', best), holds('NotBestEffort', best)], [true, false])
  t.same([holds('BestEffort', other), holds('NotBestEffort', other)], [false, true])
})

test('pods are selected by their priority class', async (t) => {
  const [high, none] = [aPod({ spec: { priorityClassName: 'high' } }), aPod()]
  const both = (operator: string, values?: readonly string[]) =>
    [high, none].map((pod) => holds('PriorityClass', pod, operator, values))
  t.same(both('In', ['low', 'high']), [true, false])
  t.same(both('In', ['low']), [false, false])
  t.same(both('NotIn', ['high']), [false, true])
  t.same(both('Exists'), [true, false])
  t.same(both('DoesNotExist'), [false, true])
})

test('affinity to pods of other namespaces is a scope of its own', async (t) => {
  const required = (kind: 'podAffinity' | 'podAntiAffinity', more: object) =>
    aPod({ spec: { affinity: { [kind]: { requiredDuringSchedulingIgnoredDuringExecution: [{ ...term, ...more }] } } } })
  const preferred = aPod({
    spec: {
      affinity: {
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, podAffinityTerm: { ...term, namespaceSelector: {} } },
          ],
        },
      },
    },
  })
  const crosses = (pod: ReturnType<typeof aPod>) => holds('CrossNamespacePodAffinity', pod)
  t.ok(crosses(required('podAffinity', { namespaces: ['other'] })))
  t.ok(crosses(required('podAntiAffinity', { namespaceSelector: {} })))
  t.ok(crosses(preferred))
  t.notOk(crosses(required('podAffinity', {})))
  t.notOk(crosses(aPod()))
})

test('all scopes hold together; other kinds have none', async (t) => {
  const best = { scopeName: 'BestEffort', operator: 'Exists' }
  const bounded = { scopeName: 'Terminating', operator: 'Exists' }
  t.equal(isInScope(resources.pods, aPod(), [best, bounded]), false)
  t.equal(isInScope(resources.pods, aPod(), [best]), true)
  t.equal(isInScope(resources.secrets, anObject, []), true)
  t.equal(isInScope(resources.secrets, anObject, [best]), false)
  t.equal(holds('Unknown', aPod()), false)
})
