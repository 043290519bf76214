import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { admit } from './admit.ts'

const node = { cpu: '2', memory: '1Gi', pods: '3' }

test('a pod that fits is admitted', async (t) => {
  const pod = aPod({ requests: { cpu: '1', memory: '512Mi' } })
  t.same(admit(pod, [pod], node), { admit: true }, 'exactly fits')
  t.same(admit(aPod(), [], {}), { admit: true }, 'what is not known does not stop it')
})

test('the overhead of a RuntimeClass is part of what the pod asks for', async (t) => {
  const pod = aPod({ requests: { memory: '512Mi' }, spec: { overhead: { memory: '512Mi' } } })
  t.same(admit(pod, [], node), { admit: true })
  t.match(admit(pod, [aPod({ requests: { memory: '1' } })], node), { reason: 'OutOfmemory' })
})

test('a pod that does not fit is rejected in Kubernetes’ words', async (t) => {
  t.same(admit(aPod({ requests: { cpu: '1500m' } }), [aPod({ requests: { cpu: '600m' } })], node), {
    admit: false,
    reason: 'OutOfcpu',
    message: "Node didn't have enough resource: cpu, requested: 1500, used: 600, capacity: 2000",
  })
  t.match(admit(aPod({ requests: { memory: '2Gi' } }), [], node), { reason: 'OutOfmemory' })
  t.match(admit(aPod(), [aPod(), aPod(), aPod()], node), {
    reason: 'OutOfpods',
    message: "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
  })
})

test('a port of the host is had by one pod at a time', async (t) => {
  const on = (hostPort: number, more: { hostIP?: string; protocol?: string } = {}) =>
    aPod({ containers: [{ name: 'main', ports: [{ containerPort: 80, hostPort, ...more }] }] })
  t.match(admit(on(80), [on(80)], node), { admit: false, reason: 'NodePorts' })
  t.match(admit(on(80, { hostIP: '192.0.2.1' }), [on(80)], node), { admit: false })
  t.match(admit(on(80, { hostIP: '192.0.2.1' }), [on(80, { hostIP: '192.0.2.2' })], node), { admit: true })
  t.match(admit(on(80, { protocol: 'UDP' }), [on(80)], node), { admit: true })
  t.match(admit(on(81), [on(80)], node), { admit: true })
})

test('local storage is asked for like memory', async (t) => {
  const disk = { ...node, 'ephemeral-storage': '1Gi' }
  t.match(admit(aPod({ requests: { 'ephemeral-storage': '2Gi' } }), [], disk), {
    reason: 'OutOfephemeral-storage',
    message:
      "Node didn't have enough resource: ephemeral-storage, requested: 2147483648, used: 0, capacity: 1073741824",
  })
})

test('of extended resources only devices are counted here: others may be on the Node by hand', async (t) => {
  const asks = (resource: string) => aPod({ requests: { [resource]: '1' } })
  t.same(admit(asks('example.com/licence'), [asks('example.com/licence')], node), { admit: true })
  t.match(admit(asks('bramble.dev/camera'), [], node), { reason: 'OutOfbramble.dev/camera' })
  t.match(admit(asks('bramble.dev/camera'), [], { ...node, 'bramble.dev/camera': '1' }), { admit: true })
  const critical = aPod({ priority: 2_000_000_000, requests: { 'bramble.dev/camera': '1' } })
  t.match(admit(critical, [aPod({ name: 'other' })], node), { message: /: \[\(res: bramble\.dev\/camera, q: 1\), \]$/ })
})

test('a pod of another operating system is rejected in Kubernetes’ words, also a critical one', async (t) => {
  const of = (name: string, priority = 0) => {
    const pod = aPod()
    return { ...pod, spec: { ...pod.spec, os: { name }, priority } }
  }
  t.same(admit(of('linux'), [], node), { admit: true })
  for (const priority of [0, 2_000_001_000]) {
    t.same(admit(of('windows', priority), [], node), {
      admit: false,
      reason: 'PodOSNotSupported',
      message: "Failed to admit pod as the OS field doesn't match node OS",
    })
  }
  const labelled = (os: string) => {
    const pod = aPod()
    return { ...pod, metadata: { ...pod.metadata, labels: { 'kubernetes.io/os': os } } }
  }
  t.same(admit(labelled('linux'), [], node), { admit: true })
  t.same(admit(labelled('windows'), [], node), {
    admit: false,
    reason: 'PodOSSelectorNodeLabelDoesNotMatch',
    message: "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
  })
})

test('a pod with a sysctl that is not safe is refused', async (t) => {
  const sets = (name: string) => {
    const pod = aPod()
    return { ...pod, spec: { ...pod.spec, securityContext: { sysctls: [{ name, value: '1' }] } } }
  }
  t.same(admit(sets('kernel.msgmax'), [], node), {
    admit: false,
    reason: 'SysctlForbidden',
    message: 'forbidden sysctl: "kernel.msgmax" not allowlisted',
  })
  for (const name of ['kernel.shm_rmid_forced', 'kernel/shm_rmid_forced'])
    t.match(admit(sets(name), [], node), { admit: true })
})

test('a node short of memory takes no pod that asked for none, unless it can bear it', async (t) => {
  const memory = ['MemoryPressure'] as const
  t.same(admit(aPod(), [], node, memory), {
    admit: false,
    reason: 'Evicted',
    message: 'The node had condition: [MemoryPressure]. ',
  })
  t.match(admit(aPod({ requests: { cpu: '1m' } }), [], node, memory), { admit: true })
  const tolerations = [{ key: 'node.kubernetes.io/memory-pressure', operator: 'Exists', effect: 'NoSchedule' }] as const
  t.match(admit(aPod({ tolerations }), [], node, memory), { admit: true })
  t.match(admit(aPod({ priority: 2_000_000_000 }), [], node, memory), { admit: true })
})

test('a node short of disk or processes takes only what it needs itself', async (t) => {
  const asks = aPod({ requests: { cpu: '1m' } })
  t.match(admit(asks, [], node, ['MemoryPressure', 'DiskPressure']), {
    admit: false,
    message: 'The node had condition: [MemoryPressure DiskPressure]. ',
  })
  t.match(admit(asks, [], node, ['PIDPressure']), { admit: false })
  t.match(admit(aPod({ priority: 2_000_001_000 }), [], node, ['DiskPressure']), { admit: true })
})

test('for a pod the machine needs others make room, as few and as little as will do', async (t) => {
  const critical = aPod({ name: 'critical', priority: 2_000_000_000, requests: { cpu: '500m' } })
  const both = { cpu: '1', memory: '1Gi' }
  const guaranteed = aPod({ name: 'guaranteed', requests: both, limits: both })
  const [large, small] = [
    aPod({ name: 'large', requests: { cpu: '800m' } }),
    aPod({ name: 'small', requests: { cpu: '200m' } }),
  ]
  const answer = admit(critical, [guaranteed, large, small], { cpu: '2', memory: '2Gi', pods: '10' })
  t.same(answer.admit && answer.preempt?.map(({ metadata }) => metadata.name), ['large'])
  const more = admit(critical, [aPod(), aPod({ name: 'b' })], { cpu: '2', pods: '2' })
  t.equal(more.admit && more.preempt?.length, 1, 'one place is enough')
})

test('no pod is preempted if preemption cannot free enough', async (t) => {
  const critical = aPod({ name: 'critical', priority: 2_000_000_000, requests: { cpu: '3' } })
  t.same(admit(critical, [aPod({ name: 'a', requests: { cpu: '1' } })], node), {
    admit: false,
    reason: 'UnexpectedAdmissionError',
    message:
      'Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods ' +
      'to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]',
  })
  const other = aPod({ name: 'other', priority: 2_000_001_000, requests: { cpu: '2' } })
  t.match(admit(aPod({ ...critical, priority: 2_000_000_000, requests: { cpu: '1' } }), [other], node), {
    admit: false,
  })
})

test('a node that shuts down admits no pod, however critical', async (t) => {
  const refused = { admit: false, reason: 'NodeShutdown', message: 'Pod was rejected as the node is shutting down.' }
  t.same(admit(aPod(), [], {}, [], true), refused)
  t.same(admit(aPod({ priority: 2_000_001_000 }), [], {}, [], true), refused)
})

test('a port on all addresses excludes every other one, however either is written', async (t) => {
  const on = (hostIP?: string) =>
    aPod({ containers: [{ name: 'main', ports: [{ containerPort: 80, hostPort: 80, ...(hostIP && { hostIP }) }] }] })
  const message = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
  for (const everywhere of [undefined, '0.0.0.0']) {
    t.same(admit(on(everywhere), [on('192.0.2.1')], node), { admit: false, reason: 'NodePorts', message })
    t.same(admit(on('192.0.2.1'), [aPod(), on(everywhere)], node), { admit: false, reason: 'NodePorts', message })
  }
  for (const everywhere of [undefined, '0.0.0.0', '::', 'fd00:0::1']) {
    t.match(admit(on(everywhere), [on('fd00::1')], node), { admit: false })
  }
  t.match(admit(on('::'), [on('192.0.2.1')], node), { admit: true })
  t.match(admit(on('192.0.2.1'), [on('192.0.2.1')], node), { admit: false })
  t.match(admit(on('192.0.2.1'), [on('192.0.2.2'), on('192.0.2.1')], node), { admit: false }, 'one of two')
  t.match(admit({ ...on(), spec: { ...on().spec, priority: 2_000_000_000 } }, [on()], node), { reason: 'NodePorts' })
})

test('init containers need their turn beside the sidecars started before them', async (t) => {
  const asks = (memory: string, restartPolicy?: 'Always') => ({
    name: 'c',
    resources: { requests: { memory } },
    ...(restartPolicy && { restartPolicy }),
  })
  const needed = (initContainers: readonly ReturnType<typeof asks>[]) => {
    const answer = admit(aPod({ containers: [asks('100')], spec: { initContainers } }), [], { memory: '1' })
    return answer.admit ? undefined : Number(/requested: (\d+)/.exec(answer.message)?.[1])
  }
  t.equal(needed([]), 100)
  t.equal(needed([asks('70'), asks('60')]), 100, 'one after the other')
  t.equal(needed([asks('170'), asks('60')]), 170)
  t.equal(needed([asks('30', 'Always'), asks('20', 'Always')]), 150, 'sidecars stay')
  t.equal(needed([asks('30', 'Always'), asks('130')]), 160, 'the sidecar runs already')
  t.equal(needed([asks('130'), asks('30', 'Always')]), 130, 'the sidecar does not run yet')
})

test('a limit without a request is one', async (t) => {
  t.match(admit(aPod({ limits: { memory: '2Gi' } }), [], node), { reason: 'OutOfmemory' })
  t.match(admit(aPod({ limits: { memory: '2Gi' }, requests: { memory: '1Mi' } }), [], node), { admit: true })
  t.match(admit(aPod({ limits: { 'bramble.dev/camera': '1' } }), [], node), { reason: 'OutOfbramble.dev/camera' })
})

test('a pod that asks for nothing is admitted to a node that has less than was promised', async (t) => {
  t.same(admit(aPod(), [aPod({ requests: { cpu: '3' } })], node), { admit: true })
})

test('until the node was inspected no device is missing', async (t) => {
  t.same(admit(aPod({ requests: { 'bramble.dev/camera': '1' } }), [], {}), { admit: true })
  t.same(admit(aPod({ requests: { 'bramble.dev/camera': '0' } }), [], node), { admit: true }, 'none is asked for')
})

test('the first resource that lacks is named, in the order of Kubernetes’ checks', async (t) => {
  const greedy = aPod({ requests: { memory: '2Gi', cpu: '3', 'bramble.dev/camera': '1' } })
  t.match(admit(greedy, [], node), { reason: 'OutOfcpu' })
  t.match(admit(greedy, [], { ...node, pods: '0' }), { reason: 'OutOfpods' })
  t.match(admit(greedy, [], { ...node, cpu: '3' }), { reason: 'OutOfmemory' })
})

test('room is made for exactly what lacks of each resource', async (t) => {
  const critical = (requests: { readonly [name: string]: string }) =>
    aPod({ name: 'critical', priority: 2_000_000_000, requests })
  const other = aPod({ name: 'other', requests: { cpu: '500m', memory: '512Mi' } })
  const exact = admit(critical({ cpu: '2', memory: '1Gi' }), [other], node)
  t.same(exact.admit && exact.preempt?.map(({ metadata }) => metadata.name), ['other'])
  t.same(admit(critical({ cpu: '3', memory: '2Gi' }), [other], node), {
    admit: false,
    reason: 'UnexpectedAdmissionError',
    message:
      'Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods ' +
      'to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 1000), (res: memory, q: 1073741824), ]',
  })
})
