import { test } from 'tap'
import type { PodSpec } from '../../../../api/pod.ts'
import { problemText } from '../../../../api/problem.ts'
import type { ReplicaSet } from '../../../../api/workloads/replica-set.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { replicaSetStrategy, replicaStatusProblems } from './replica-set.ts'

const set = (
  spec: Partial<ReplicaSet['spec']> = {},
  pod: Partial<PodSpec> = {},
  labels = { app: 'web' },
): ReplicaSet => ({
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'nginx:1.27' }], ...pod } },
    ...spec,
  },
})
const wrong = (...given: Parameters<typeof set>) => causes(() => create('replicasets', set(...given)))

test('a set has one replica, and no status of its author', async (t) => {
  const made = create('replicasets', { ...set(), status: { replicas: 9 } })
  t.match(made, { spec: { replicas: 1, template: { spec: { restartPolicy: 'Always' } } }, status: { replicas: 0 } })
  t.match(create('replicasets', set({ replicas: 0 })), { spec: { replicas: 0 } })
})

test('every wrong field of a set is named', async (t) => {
  t.same(wrong(), [])
  t.same(wrong({ replicas: -1, minReadySeconds: -2 }), [
    'spec.replicas: Invalid value: -1: must be greater than or equal to 0',
    'spec.minReadySeconds: Invalid value: -2: must be greater than or equal to 0',
  ])
  t.same(wrong({ selector: undefined }), ['spec.selector: Required value'])
  t.same(wrong({ selector: {} }), ['spec.selector: Invalid value: {}: empty selector is invalid for deployment'])
  t.match(wrong({ selector: { matchExpressions: [{ key: 'app', operator: 'Like' }] } }), [
    /^spec.selector.matchExpressions\[0\].operator: Invalid value: "Like"/,
    /^spec.selector: Invalid value: .*: invalid label selector$/,
  ])
  t.same(wrong({}, {}, { app: 'db' }), [
    'spec.template.metadata.labels: Invalid value: {"app":"db"}: `selector` does not match template `labels`',
  ])
  t.same(wrong({}, { restartPolicy: 'Never', activeDeadlineSeconds: 5 }), [
    'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    'spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported',
  ])
})

test('what a set selects stays, and how many it has may change', async (t) => {
  const made = create('replicasets', set())
  const changed = (...given: Parameters<typeof set>) => causes(() => update('replicasets', made, set(...given)))
  t.same(changed({ replicas: 5, minReadySeconds: 3 }), [])
  t.same(changed({ selector: { matchLabels: { app: 'db' } } }, {}, { app: 'db' }), [
    'spec.selector: Invalid value: {"matchLabels":{"app":"db"}}: field is immutable',
  ])
})

test('the counts of a status agree with each other', async (t) => {
  const problems = (status: ReplicaSet['status']) => replicaStatusProblems({ status }).map(problemText)
  t.same(problems(undefined), [])
  t.same(problems({ replicas: 3, fullyLabeledReplicas: 3, readyReplicas: 3, availableReplicas: 3 }), [])
  const above = 'cannot be greater than status.replicas'
  t.same(problems({ replicas: 1, fullyLabeledReplicas: 2, readyReplicas: 2, availableReplicas: 2 }), [
    `status.fullyLabeledReplicas: Invalid value: 2: ${above}`,
    `status.readyReplicas: Invalid value: 2: ${above}`,
    `status.availableReplicas: Invalid value: 2: ${above}`,
  ])
  t.same(problems({ replicas: 3, readyReplicas: 1, availableReplicas: 2 }), [
    'status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas',
  ])
  const negative = problems({
    replicas: -1,
    fullyLabeledReplicas: -1,
    readyReplicas: -1,
    availableReplicas: -1,
    observedGeneration: -1,
  })
  t.same(
    [...negative].sort(),
    ['availableReplicas', 'fullyLabeledReplicas', 'observedGeneration', 'readyReplicas', 'replicas'].map(
      (name) => `status.${name}: Invalid value: -1: must be greater than or equal to 0`,
    ),
  )
})

test('the table shows the replicas of a set, its containers and its selector', async (t) => {
  const cells = (one: ReplicaSet) => replicaSetStrategy.table.cells(one, 0)
  t.same(cells(set()), ['web', 0, 0, 0, '<unknown>', 'web', 'nginx:1.27', 'app=web'])
  t.same(cells({ ...set({ replicas: 3 }), status: { replicas: 2, readyReplicas: 1 } }).slice(1, 4), [3, 2, 1])
})
