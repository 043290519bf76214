import { test } from 'tap'
import type { Pod } from '../../api/pod.ts'
import { aNode, aPod, type NodeOverrides, requiringNodes } from '../../api/testing/builders.ts'
import { finished } from '../../daemon/watchdog/steps.ts'
import type { StoredObject } from '../store/store.ts'
import { aCluster, inZone, requires, spreads } from '../testing/scheduling.ts'
import { countedReasons, refusal, roundFor, unavailable } from './filter.ts'
import { type NodeInfo, nodeInfo } from './node-usage.ts'
import { podNeeds } from './pod-needs.ts'

function aNodeInfo(over: NodeOverrides = {}, ...pods: readonly StoredObject<'pods'>[]): NodeInfo {
  const info = nodeInfo(aNode(over))
  for (const [i, pod] of pods.entries()) info.add(`p${i}`, pod)
  return info
}

function refusals(pod: Pod, info: NodeInfo): readonly string[] {
  return (
    refusal({ pod, needs: podNeeds(pod), volumes: undefined, spread: [], neighbours: undefined }, info)?.reasons ?? []
  )
}

test('an empty Ready node takes an ordinary pod', async (t) => {
  t.same(refusals(aPod(), aNodeInfo()), [])
})

test('a pod with claims stays off a node whose agent does not mount them', async (t) => {
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }]
  const withClaim = aPod({ spec: { volumes } })
  const scratch = aPod({ spec: { volumes: [{ name: 'data', ephemeral: {} }] } })
  const older = aNodeInfo({ annotations: { 'bramble.dev/hardware-identity': '{}' } })
  const newer = aNodeInfo({
    annotations: { 'bramble.dev/hardware-identity': '{}', 'bramble.dev/mounts-claims': 'true' },
  })
  for (const pod of [withClaim, scratch]) {
    t.same(refusals(pod, older), ['node(s) ran an agent without volumes'])
    t.same(refusals(pod, newer), [])
  }
  t.same(refusals(aPod(), older), [])
  const container = { name: 'main', volumeDevices: [{ name: 'data', devicePath: '/dev/data' }] }
  const withDevice = aPod({ spec: { volumes, containers: [container] } })
  t.same(refusals(withDevice, newer), ['node(s) ran an agent without volumes'], 'it would start without its device')
  const annotations = { 'bramble.dev/hardware-identity': '{}', 'bramble.dev/maps-block-volumes': 'true' }
  t.same(refusals(withDevice, aNodeInfo({ annotations })), [])
})

test('requests are held against what is allocatable and not yet requested', async (t) => {
  const half = aPod({ requests: { cpu: '2', memory: '1Gi' } })
  t.same(refusals(half, aNodeInfo({}, half)), [], 'an exact fit is a fit')
  t.same(refusals(aPod({ requests: { cpu: '2001m' } }), aNodeInfo({}, half)), ['Insufficient cpu'])
  t.same(refusals(aPod({ requests: { cpu: '9', memory: '9Gi' } }), aNodeInfo()), [
    'Insufficient cpu',
    'Insufficient memory',
  ])
  t.same(refusals(aPod({ requests: { 'example.com/camera': '1' } }), aNodeInfo()), ['Insufficient example.com/camera'])
  t.same(refusals(aPod({ limits: { cpu: '5' } }), aNodeInfo()), ['Insufficient cpu'], 'a limit alone is a request')
  t.same(
    refusals(aPod(), aNodeInfo({}, aPod({ requests: { cpu: '9' } }))),
    [],
    'who asks for nothing fits an overfull node',
  )
  const zero = aPod({ requests: { cpu: '0', 'example.com/camera': '0' } })
  t.same(refusals(zero, aNodeInfo({}, aPod({ requests: { cpu: '9' } }))), [], 'nor does a request of zero need room')
})

test('a node holds at most so many pods', async (t) => {
  t.same(refusals(aPod(), aNodeInfo({ allocatable: { pods: '1' } }, aPod())), ['Too many pods'])
  t.same(refusals(aPod(), aNodeInfo({ allocatable: { pods: '2' } }, aPod())), [], 'the last place can be taken')
})

test('taints keep pods away that do not tolerate them', async (t) => {
  const tainted = aNodeInfo({ taints: [{ key: 'camera', value: 'hd', effect: 'NoSchedule' }] })
  t.same(refusals(aPod(), tainted), ['node(s) had untolerated taint {camera: hd}'])
  t.same(refusals(aPod({ tolerations: [{ key: 'camera', value: 'hd' }] }), tainted), [])
  t.same(refusals(aPod(), aNodeInfo({ taints: [{ key: 'a', effect: 'NoExecute' }] })), [
    'node(s) had untolerated taint {a: }',
  ])
  t.same(refusals(aPod(), aNodeInfo({ taints: [{ key: 'a', effect: 'PreferNoSchedule' }] })), [])
})

test('a cordoned node takes only what tolerates that', async (t) => {
  const cordoned = aNodeInfo({ unschedulable: true })
  t.same(refusals(aPod(), cordoned), ['node(s) were unschedulable'])
  t.same(refusals(aPod({ tolerations: [{ operator: 'Exists' }] }), cordoned), [])
  t.same(refusals(aPod(), nodeInfo({ ...aNode(), spec: undefined })), [], 'a node without a spec is not cordoned')
})

test('selector and required affinity must both hold; terms are alternatives', async (t) => {
  const arm = aNodeInfo({ labels: { place: 'roof' } })
  const no = ["node(s) didn't match Pod's node affinity/selector"]
  const terms = (...places: string[]) =>
    requiringNodes(
      ...places.map((place) => ({ matchExpressions: [{ key: 'place', operator: 'In', values: [place] }] })),
    )
  t.same(refusals(aPod({ nodeSelector: { place: 'roof' } }), arm), [])
  t.same(refusals(aPod({ nodeSelector: { place: 'cellar' } }), arm), no)
  t.same(refusals(aPod({ nodeSelector: { constructor: 'x' } }), arm), no)
  t.same(refusals(aPod({ spec: terms('cellar', 'roof') }), arm), [])
  t.same(refusals(aPod({ spec: terms('cellar') }), arm), no)
  t.same(refusals(aPod({ spec: terms() }), arm), no, 'no term holds nowhere')
})

test('host ports meet on the same address, or on all', async (t) => {
  const listening = (hostPort: number, hostIP?: string, protocol?: string) =>
    aPod({
      containers: [
        {
          name: 'c',
          ports: [{ containerPort: 80, hostPort, ...(hostIP && { hostIP }), ...(protocol && { protocol }) }],
        },
      ],
    })
  const busy = aNodeInfo({}, listening(80), listening(90, '10.0.0.1'))
  const no = ["node(s) didn't have free ports for the requested pod ports"]
  t.same(refusals(listening(80, '10.0.0.1'), busy), no)
  t.same(refusals(listening(90), busy), no)
  t.same(refusals(listening(90, '10.0.0.2'), busy), [])
  const busyAtIPv6 = aNodeInfo({}, listening(80, '::'), listening(90, 'fd00::1'))
  t.same(refusals(listening(80), busyAtIPv6), no)
  t.same(refusals(listening(80, 'fd00::1'), busyAtIPv6), no)
  t.same(refusals(listening(90, 'fd00:0::1'), busyAtIPv6), no)
  t.same(refusals(listening(90, '::'), busyAtIPv6), no)
  t.same(refusals(listening(80, '10.0.0.1'), busyAtIPv6), [])
  t.same(refusals(listening(90, 'fd00::2'), busyAtIPv6), [])
  t.same(refusals(listening(80, undefined, 'UDP'), busy), [])
  t.same(refusals(aPod({ containers: [{ name: 'c', ports: [{ containerPort: 80 }] }] }), busy), [])
})

test('what is given back is free again', async (t) => {
  const info = aNodeInfo({}, aPod({ requests: { cpu: '4' } }))
  t.same(refusals(aPod({ requests: { cpu: '1' } }), info), ['Insufficient cpu'])
  info.remove('p0')
  t.same([info.requested('cpu'), info.scored('memory'), info.podCount], [0, 0, 0])
  t.same(refusals(aPod({ requests: { cpu: '4' } }), info), [])
})

test('the sentence counts the nodes by reason, in order', async (t) => {
  const refused = [['node(s) were unschedulable'], ['Insufficient cpu', 'Too many pods'], ['Insufficient cpu']]
  t.equal(
    unavailable(3, countedReasons(refused)),
    '0/3 nodes are available: 1 Too many pods, 1 node(s) were unschedulable, 2 Insufficient cpu.',
  )
})

test('each refusal names its plugin, and whether evicting pods from the node could help', async (t) => {
  const port = { containers: [{ name: 'c', ports: [{ containerPort: 80, hostPort: 80 }] }] }
  const cases = [
    { pod: aPod(), on: aNodeInfo({ unschedulable: true }), plugin: 'NodeUnschedulable', isFinal: true },
    { pod: aPod({ nodeName: 'other' }), on: aNodeInfo(), plugin: 'NodeName', isFinal: true },
    {
      pod: aPod(),
      on: aNodeInfo({ taints: [{ key: 'a', effect: 'NoSchedule' }] }),
      plugin: 'TaintToleration',
      isFinal: true,
    },
    { pod: aPod({ nodeSelector: { place: 'roof' } }), on: aNodeInfo(), plugin: 'NodeAffinity', isFinal: true },
    { pod: aPod(port), on: aNodeInfo({}, aPod(port)), plugin: 'NodePorts', isFinal: false },
    {
      pod: aPod({ requests: { cpu: '4' } }),
      on: aNodeInfo({}, aPod({ requests: { cpu: '1m' } })),
      plugin: 'NodeResourcesFit',
      isFinal: false,
    },
    { pod: aPod({ requests: { cpu: '4001m' } }), on: aNodeInfo(), plugin: 'NodeResourcesFit', isFinal: true },
    {
      pod: aPod({ requests: { 'example.com/camera': '1' } }),
      on: aNodeInfo(),
      plugin: 'NodeResourcesFit',
      isFinal: true,
    },
    { pod: aPod(), on: aNodeInfo({ allocatable: { pods: '1' } }, aPod()), plugin: 'NodeResourcesFit', isFinal: false },
  ] as const
  for (const { pod, on, plugin, isFinal } of cases) {
    const found = refusal({ pod, needs: podNeeds(pod), volumes: undefined, spread: [], neighbours: undefined }, on)
    t.match(found, { plugin, isFinal }, `${plugin}: ${found?.reasons}`)
  }
})

test('a pod that names its node goes there alone', async (t) => {
  t.same(refusals(aPod({ nodeName: 'pi-01' }), aNodeInfo()), [])
  t.same(refusals(aPod({ nodeName: 'pi-02' }), aNodeInfo()), ["node(s) didn't match the requested node name"])
})

test('only the first filter gives reasons; resources give all of theirs', async (t) => {
  const taints = [{ key: 'a', effect: 'NoSchedule' }] as const
  t.same(refusals(aPod(), aNodeInfo({ unschedulable: true, taints })), ['node(s) were unschedulable'])
  const full = aNodeInfo({ allocatable: { pods: '1' } }, aPod())
  t.same(refusals(aPod({ requests: { cpu: '9', memory: '9Gi' } }), full), [
    'Too many pods',
    'Insufficient cpu',
    'Insufficient memory',
  ])
  const { pods: _, ...allocatable } = aNode().status?.allocatable ?? {}
  t.same(refusals(aPod(), aNodeInfo({ status: { ...aNode().status, allocatable } })), ['Too many pods'])
})

test('a toleration of another taint does not open a cordoned node', async (t) => {
  const cordoned = aNodeInfo({ unschedulable: true })
  t.same(refusals(aPod({ tolerations: [{ key: 'camera', operator: 'Exists' }] }), cordoned), [
    'node(s) were unschedulable',
  ])
  const both = [
    { key: 'camera', operator: 'Exists' },
    { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
  ] as const
  t.same(refusals(aPod({ tolerations: both }), cordoned), [])
})

test('nodes that were not looked at are counted with their reason', async (t) => {
  t.equal(countedReasons([['Insufficient cpu']], ['Insufficient cpu', 2]), '3 Insufficient cpu')
  t.equal(countedReasons([['b']], ['a', 1]), '1 a, 1 b')
  t.equal(countedReasons([], ['a', 0]), '')
  t.equal(countedReasons([]), '')
  t.equal(unavailable(0, ''), '0/0 nodes are available:')
})

test('a spread constraint refuses a node for good only if the node has no such label', async (t) => {
  const known = aCluster(
    [inZone('a', '1'), inZone('b', '2'), { name: 'c' }],
    [{ nodeName: 'a', labels: { app: 'web' } }],
  )
  const round = finished(roundFor(aPod({ labels: { app: 'web' }, spec: spreads({}) }), known))
  const text = "node(s) didn't match pod topology spread constraints"
  t.same(
    [...known.from(0)].map((usage) => refusal(round, usage)),
    [
      { plugin: 'PodTopologySpread', reasons: [text], isFinal: false },
      undefined,
      { plugin: 'PodTopologySpread', reasons: [`${text} (missing required label)`], isFinal: true },
    ],
    'pods that leave zone 1 make the first fit',
  )
})

test('missing neighbours refuse a node for good; neighbours to keep away from might leave', async (t) => {
  const known = aCluster([{ name: 'a' }, { name: 'b' }], [{ nodeName: 'a', labels: { app: 'db' } }])
  const on = (pod: Pod) => [...known.from(0)].map((usage) => refusal(finished(roundFor(pod, known)), usage))
  t.same(on(aPod({ spec: requires('podAffinity', 'db') })), [
    undefined,
    { plugin: 'InterPodAffinity', reasons: ["node(s) didn't match pod affinity rules"], isFinal: true },
  ])
  t.same(on(aPod({ spec: requires('podAntiAffinity', 'db') })), [
    { plugin: 'InterPodAffinity', reasons: ["node(s) didn't match pod anti-affinity rules"], isFinal: false },
    undefined,
  ])
})
