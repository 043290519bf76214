import { test } from 'tap'
import { aPod, type PodOverrides } from '../../api/testing/builders.ts'
import { aCluster, type Bound, requires, spreads } from '../testing/scheduling.ts'
import type { Plugin } from './filter.ts'
import { type ClusterChange, mayFit } from './hints.ts'

const full: Bound = { nodeName: 'a', requests: { cpu: '4' } }

const helps = (over: PodOverrides, refusedBy: Plugin, change: ClusterChange, bound: readonly Bound[] = []) =>
  mayFit({ pod: aPod(over), refusedBy: new Set([refusedBy]) }, change, aCluster([{ name: 'a' }], bound))

test('a node helps those that it could take', async (t) => {
  const node: ClusterChange = { change: 'node', nodeName: 'a' }
  t.ok(helps({}, 'NodeResourcesFit', node))
  t.notOk(helps({ nodeSelector: { ssd: '1' } }, 'NodeAffinity', node))
  t.notOk(helps({ requests: { cpu: '5' } }, 'NodeResourcesFit', node))
  t.notOk(helps({ requests: { cpu: '1' } }, 'NodeResourcesFit', node, [full]))
  t.ok(helps({ requests: { cpu: '1' }, priority: 1 }, 'NodeResourcesFit', node, [full]), 'by preemption')
  const polite = { requests: { cpu: '1' }, priority: 1, spec: { preemptionPolicy: 'Never' } } as const
  t.notOk(helps(polite, 'NodeResourcesFit', node, [full]))
  t.notOk(helps({ requests: { cpu: '5' }, priority: 1 }, 'NodeResourcesFit', node, [full]), 'it is too large')
  t.ok(helps({ nodeSelector: { ssd: '1' } }, 'PodTopologySpread', node), 'a new zone changes the count of all')
  t.notOk(helps({}, 'NodeResourcesFit', { change: 'node', nodeName: 'gone' }))
})

test('a pod that goes helps those that wanted its room, or did not want it near', async (t) => {
  const gone = (over: PodOverrides = {}): ClusterChange => ({ change: 'pod gone', pod: aPod(over), nodeName: 'a' })
  t.ok(helps({ requests: { cpu: '1' } }, 'NodeResourcesFit', gone()))
  t.notOk(helps({ requests: { cpu: '1' } }, 'TaintToleration', gone()))
  t.notOk(helps({ requests: { cpu: '1' } }, 'NodeResourcesFit', gone(), [full]))
  const shy = { spec: requires('podAntiAffinity', 'db') }
  t.ok(helps(shy, 'InterPodAffinity', gone({ labels: { app: 'db' } })))
  t.notOk(helps(shy, 'InterPodAffinity', gone({ labels: { app: 'web' } })))
  t.ok(helps({ labels: { app: 'db' } }, 'InterPodAffinity', gone(shy)), 'it kept others away')
  const web = gone({ labels: { app: 'web' } })
  t.ok(helps({ spec: spreads({}) }, 'PodTopologySpread', web))
  t.notOk(helps({ spec: spreads({}) }, 'TaintToleration', web))
  t.notOk(helps({ spec: spreads({}) }, 'PodTopologySpread', gone({ labels: { app: 'db' } })))
  const other = { labelSelector: { matchLabels: { app: 'db' } } }
  t.ok(helps({ spec: spreads(other, {}) }, 'PodTopologySpread', web), 'by one of its constraints')
  const { labelSelector: _, ...unselected } = spreads({}).topologySpreadConstraints?.[0] ?? {}
  const all = { spec: { topologySpreadConstraints: [unselected] } } as PodOverrides
  t.notOk(helps(all, 'PodTopologySpread', web), 'a constraint without a selector counts no pods')
  const shyOfTwo = (kind: 'podAffinity' | 'podAntiAffinity') => {
    const required = ['db', 'web'].flatMap(
      (app) => requires(kind, app).affinity?.[kind]?.requiredDuringSchedulingIgnoredDuringExecution ?? [],
    )
    return { spec: { affinity: { [kind]: { requiredDuringSchedulingIgnoredDuringExecution: required } } } }
  }
  t.ok(helps(shyOfTwo('podAntiAffinity'), 'InterPodAffinity', web))
  t.ok(
    helps(shyOfTwo('podAffinity'), 'InterPodAffinity', { change: 'pod placed', pod: aPod({ labels: { app: 'web' } }) }),
  )
})

test('a pod that comes helps those that wait for company, or for the others to catch up', async (t) => {
  const placed = (app: string, namespace = 'default'): ClusterChange => ({
    change: 'pod placed',
    pod: aPod({ labels: { app }, namespace }),
  })
  t.ok(helps({ spec: requires('podAffinity', 'db') }, 'InterPodAffinity', placed('db')))
  t.notOk(helps({ spec: requires('podAffinity', 'db') }, 'InterPodAffinity', placed('web')))
  t.ok(helps({ spec: spreads({}) }, 'PodTopologySpread', placed('web')))
  t.notOk(helps({ spec: spreads({}) }, 'PodTopologySpread', placed('web', 'other')))
  t.notOk(helps({}, 'NodeResourcesFit', placed('web')))
  t.ok(helps({}, 'InterPodAffinity', { change: 'namespace' }))
  t.ok(helps({}, 'PodTopologySpread', { change: 'node gone' }))
})

test('a pod of a namespace that is chosen by its labels is company', async (t) => {
  const known = aCluster([{ name: 'a' }])
  known.putNamespace('data', { team: 'red' })
  const spec = requires('podAffinity', 'db', { namespaceSelector: { matchLabels: { team: 'red' } } })
  const company = (namespace: string) =>
    mayFit(
      { pod: aPod({ spec }), refusedBy: new Set(['InterPodAffinity']) },
      { change: 'pod placed', pod: aPod({ labels: { app: 'db' }, namespace }) },
      known,
    )
  t.same([company('data'), company('other')], [true, false])
})
