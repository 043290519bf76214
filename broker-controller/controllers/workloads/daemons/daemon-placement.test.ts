import { test } from 'tap'
import type { Taint } from '../../../../api/node.ts'
import type { PodSpec, PodTemplateSpec, Toleration } from '../../../../api/pod.ts'
import { aNode, aPod, requiringNodes } from '../../../../api/testing/builders.ts'
import {
  daemonPlacement,
  daemonTemplate,
  daemonTolerations,
  isUpdatedDaemon,
  nodeOfDaemon,
  pinnedTo,
} from './daemon-placement.ts'

const template = (spec: Partial<PodSpec> = {}): PodTemplateSpec => ({
  metadata: { labels: { app: 'log' } },
  spec: { containers: [{ name: 'main', image: 'i' }], ...spec },
})
const placement = (node: Parameters<typeof aNode>[0], spec?: Partial<PodSpec>) => {
  const { shouldRun, shouldContinue } = daemonPlacement(template(spec), aNode(node))
  return `${shouldRun ? 'runs' : 'does not run'}, ${shouldContinue ? 'stays' : 'goes'}`
}
const taint = (key: string, effect: Taint['effect']): Taint => ({ key, effect })

test('a daemon runs on every node that its template allows', async (t) => {
  const labels = { disk: 'ssd' }
  t.equal(placement({}), 'runs, stays')
  t.equal(placement({ labels }, { nodeSelector: labels }), 'runs, stays')
  t.same(daemonPlacement(template({ nodeSelector: labels }), aNode()), { shouldRun: false, shouldContinue: false })
  t.equal(placement({ name: 'a' }, { nodeName: 'a' }), 'runs, stays')
  t.equal(placement({ name: 'b' }, { nodeName: 'a' }), 'does not run, goes')
  const affinity = requiringNodes({ matchExpressions: [{ key: 'disk', operator: 'In', values: ['ssd'] }] })
  t.equal(placement({ labels }, affinity), 'runs, stays')
  t.equal(placement({}, affinity), 'does not run, goes')
})

test('a taint keeps daemons away, and only NoExecute ends those that are there', async (t) => {
  t.equal(placement({ taints: [taint('a', 'NoSchedule')] }), 'does not run, stays')
  t.equal(placement({ taints: [taint('a', 'NoExecute')] }), 'does not run, goes')
  t.equal(placement({ taints: [taint('a', 'PreferNoSchedule')] }), 'runs, stays')
  t.equal(placement({ taints: [taint('a', 'NoExecute')] }, { tolerations: [{ operator: 'Exists' }] }), 'runs, stays')
})

test('a node in trouble keeps its daemons, and a cordoned one gets them', async (t) => {
  for (const key of ['not-ready', 'unreachable']) {
    t.equal(placement({ taints: [taint(`node.kubernetes.io/${key}`, 'NoExecute')] }), 'runs, stays', key)
  }
  for (const key of ['disk-pressure', 'memory-pressure', 'pid-pressure', 'unschedulable']) {
    t.equal(placement({ taints: [taint(`node.kubernetes.io/${key}`, 'NoSchedule')] }), 'runs, stays', key)
  }
  const networkless = { taints: [taint('node.kubernetes.io/network-unavailable', 'NoSchedule')] }
  t.equal(placement(networkless), 'does not run, stays')
  t.equal(placement(networkless, { hostNetwork: true }), 'runs, stays')
})

test('tolerations of the template stay; one for a while becomes one for ever', async (t) => {
  const key = 'node.kubernetes.io/unreachable'
  const own = { key: 'mine', operator: 'Exists' }
  const brief = { key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 } as const
  const { containers } = template().spec
  const tolerations = daemonTolerations({ containers, tolerations: [own, brief] })
  t.same(tolerations.slice(0, 2), [own, { key, operator: 'Exists', effect: 'NoExecute' }])
  t.equal(tolerations.length, 7)
  t.equal(tolerations.filter((one) => one.key === key).length, 1)
  const equal = { key, operator: 'Equal', value: 'x', effect: 'NoExecute', tolerationSeconds: 5 } as const
  t.equal(daemonTolerations({ containers, tolerations: [equal] }).length, 7, 'another toleration is left as it is')
})

test('a pod has the hash of its template and is led to its node', async (t) => {
  const { metadata, spec } = daemonTemplate(template(), 'abc', '3')
  t.same(metadata?.labels, { app: 'log', 'pod-template-generation': '3', 'controller-revision-hash': 'abc' })
  t.equal(spec.tolerations?.length, 6)
  t.same(daemonTemplate(template(), 'abc', undefined).metadata?.labels, {
    app: 'log',
    'controller-revision-hash': 'abc',
  })
  const preferred = [{ weight: 1, preference: { matchExpressions: [{ key: 'a', operator: 'Exists' }] } }]
  const affinity = {
    podAntiAffinity: {},
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: preferred,
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] },
    },
  }
  const pinned = pinnedTo(aPod({ spec: { affinity } }), 'pi-3')
  t.match(pinned.spec.affinity, {
    podAntiAffinity: {},
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: preferred,
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['pi-3'] }] }],
      },
    },
  })
  t.equal(nodeOfDaemon(pinned), 'pi-3')
  t.equal(nodeOfDaemon(pinnedTo(aPod({ nodeName: 'pi-1' }), 'pi-3')), 'pi-1')
  t.equal(nodeOfDaemon(aPod()), undefined)
  const two = requiringNodes({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a', 'b'] }] })
  t.equal(nodeOfDaemon(aPod({ spec: two })), undefined)
  const named = (key: string, operator: string) => ({ matchFields: [{ key, operator, values: ['a'] }] })
  const nodeOf = (...terms: Parameters<typeof requiringNodes>) => nodeOfDaemon(aPod({ spec: requiringNodes(...terms) }))
  t.equal(nodeOf(named('metadata.name', 'NotIn')), undefined)
  t.equal(nodeOf(named('metadata.uid', 'In')), undefined)
  t.equal(nodeOf({ matchExpressions: [] }, named('metadata.name', 'In')), 'a')
  t.equal(nodeOfDaemon(aPod({ spec: { affinity: { nodeAffinity: {} } } })), undefined)
})

test('a pod is of the present template by its hash or by its generation', async (t) => {
  const pod = (labels: { readonly [key: string]: string }) => aPod({ metadata: { labels } })
  t.ok(isUpdatedDaemon(pod({ 'controller-revision-hash': 'abc' }), 'abc', '3'))
  t.ok(isUpdatedDaemon(pod({ 'pod-template-generation': '3' }), 'abc', '3'))
  t.notOk(isUpdatedDaemon(pod({ 'controller-revision-hash': 'x', 'pod-template-generation': '2' }), 'abc', '3'))
  t.notOk(isUpdatedDaemon(pod({}), 'abc', undefined))
})

test('labels and affinities are compared by their values', async (t) => {
  t.equal(placement({ labels: { disk: 'hdd' } }, { nodeSelector: { disk: 'ssd' } }), 'does not run, goes')
  t.equal(placement({}, { affinity: { podAffinity: {} } }), 'runs, stays')
  const { spec: _, ...bare } = aNode()
  t.same(daemonPlacement(template(), bare), { shouldRun: true, shouldContinue: true })
})

test('a toleration of the template that differs from one of every daemon stays beside it', async (t) => {
  const key = 'node.kubernetes.io/not-ready'
  const count = (toleration: Toleration) => daemonTolerations({ containers: [], tolerations: [toleration] }).length
  t.equal(count({ key, operator: 'Exists', effect: 'NoExecute' }), 6)
  t.equal(count({ key, operator: 'Exists', effect: 'NoSchedule' }), 7)
  t.equal(count({ key, operator: 'Equal', effect: 'NoExecute' }), 7)
  t.equal(count({ key, operator: 'Exists', value: 'x', effect: 'NoExecute' }), 7)
})

test('a template without labels gets those of its revision', async (t) => {
  const { spec } = template()
  t.same(daemonTemplate({ spec }, 'h', undefined).metadata?.labels, { 'controller-revision-hash': 'h' })
  t.same(Object.keys(daemonTemplate({ spec }, 'h', undefined).metadata?.labels ?? {}), ['controller-revision-hash'])
})

test('a pod that is pinned to no single node is on none', async (t) => {
  const nodeOf = (affinity: PodSpec['affinity']) => nodeOfDaemon(aPod({ spec: { ...(affinity && { affinity }) } }))
  const pinned = (matchFields: readonly { key: string; operator: string; values?: readonly string[] }[]) =>
    nodeOf({
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields }] } },
    })
  t.equal(nodeOf(undefined), undefined)
  t.equal(nodeOf({ podAffinity: {} }), undefined)
  t.equal(pinned([]), undefined)
  t.equal(pinned([{ key: 'metadata.name', operator: 'In' }]), undefined)
  t.equal(pinned([{ key: 'metadata.name', operator: 'In', values: ['a', 'b'] }]), undefined)
  t.equal(pinned([{ key: 'metadata.name', operator: 'In', values: ['a'] }]), 'a')
})
