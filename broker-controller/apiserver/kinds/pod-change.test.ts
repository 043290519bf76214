import { test } from 'tap'
import type { Container, NodeSelectorTerm, Pod, PodSpec } from '../../../api/pod.ts'
import { problemText } from '../../../api/problem.ts'
import { requiringNodes } from '../../../api/testing/builders.ts'
import { causes, createdPod, fields, pod, update } from '../../testing/admitting.ts'
import { ephemeralChangeProblems, gateChangeProblems, narrowingProblems, podChangeProblems } from './pod-change.ts'

test('only images, tolerations and deadlines of a pod may change', async (t) => {
  const old = createdPod()
  const changed = (change: (spec: PodSpec) => PodSpec) =>
    fields(() => update('pods', old, { ...old, spec: change(old.spec) }))
  const container = (over: Partial<Container>) => (spec: PodSpec) => ({
    ...spec,
    containers: spec.containers.map((each) => ({ ...each, ...over })),
  })
  t.same(
    changed((spec) => spec),
    [],
  )
  t.same(changed(container({ image: 'nginx:2' })), [])
  t.same(changed(container({ image: '' })), ['spec.containers[0].image'])
  t.same(changed(container({ args: ['x'] })), ['spec.containers'])
  t.same(
    changed((spec) => ({ ...spec, nodeName: 'pi', hostNetwork: true })),
    ['spec.nodeName', 'spec.hostNetwork'],
  )
  t.same(
    changed((spec) => ({ ...spec, containers: [] })),
    ['spec.containers'],
  )
  const more = { key: 'disk', operator: 'Exists' }
  t.same(
    changed((spec) => ({ ...spec, tolerations: [...(spec.tolerations ?? []), more] })),
    [],
  )
  const longer = (spec: PodSpec) => spec.tolerations?.map((each) => ({ ...each, tolerationSeconds: 5 })) ?? []
  t.same(
    changed((spec) => ({ ...spec, tolerations: longer(spec) })),
    [],
  )
  t.same(
    changed((spec) => ({ ...spec, tolerations: [{ key: 'disk', operator: 'Exists', effect: 'NoExecute' }] })),
    [],
  )
  const staged = createdPod({ initContainers: [{ name: 'first', image: 'tools:1' }], activeDeadlineSeconds: 60 })
  const restaged = (change: Partial<PodSpec>) => {
    const { activeDeadlineSeconds: _, ...spec } = staged.spec
    return causes(() => update('pods', staged, { ...staged, spec: { ...spec, activeDeadlineSeconds: 60, ...change } }))
  }
  t.same(restaged({ initContainers: [{ name: 'first', image: 'tools:2' }] }), [])
  t.match(restaged({ initContainers: [{ name: 'first', image: 'tools:2', args: ['x'] }] }), [
    /^spec.initContainers: Forbidden: pod updates may not change fields other than `spec.containers\[\*\].image`,/,
  ])
  t.same(restaged({ initContainers: [] }), [
    'spec.initContainers: Forbidden: pod updates may not add or remove containers',
  ])
  t.same(restaged({ activeDeadlineSeconds: 30 }), [])
  t.same(restaged({ activeDeadlineSeconds: 90 }), [
    'spec.activeDeadlineSeconds: Invalid value: 90: must be less than or equal to previous value',
  ])
  const { activeDeadlineSeconds: _, ...timeless } = staged.spec
  t.match(
    causes(() => update('pods', staged, { ...staged, spec: timeless })),
    [/must not update from a positive integer to nil value/],
  )
  t.same(
    changed((spec) => ({ ...spec, activeDeadlineSeconds: 5 })),
    [],
  )
  const patient = createdPod({ tolerations: [more] })
  t.same(
    fields(() => update('pods', patient, { ...patient, spec: { ...patient.spec, tolerations: [] } })),
    ['spec.tolerations'],
  )
  t.same(
    fields(() => update('pods', old, { ...pod() })),
    [],
    'a manifest without defaults is the same pod',
  )
  t.same(
    fields(() => update('pods', old, { ...old, metadata: { ...old.metadata, name: 'other' } })),
    ['metadata.name'],
  )
})

test('a gated pod is SchedulingGated, allows only fewer gates and narrower selectors, and keeps its priority', async (t) => {
  const gated = createdPod({ schedulingGates: [{ name: 'a' }, { name: 'b' }], priority: 7 })
  t.match(gated.status?.conditions, [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }])
  const { priority: _, ...plain } = gated.spec
  const changed = (spec: Partial<PodSpec>) =>
    fields(() => update('pods', gated, { ...gated, spec: { ...plain, ...spec } }))
  const nodeAffinity = { preferredDuringSchedulingIgnoredDuringExecution: [] }
  t.same(changed({ schedulingGates: [{ name: 'b' }], nodeSelector: { a: 'b' }, affinity: { nodeAffinity } }), [])
  t.same(changed({ schedulingGates: [{ name: 'c' }] }), ['spec.schedulingGates[0].name'])
  t.same(changed({ restartPolicy: 'Never' }), ['spec.restartPolicy'])
  t.match(update('pods', gated, { ...gated, spec: plain }), { spec: { priority: 7 } })
  const free = createdPod()
  t.same(
    fields(() => update('pods', free, { ...free, spec: { ...free.spec, nodeSelector: { a: 'b' } } })),
    ['spec.nodeSelector'],
  )
})

test('gates may only be removed; node selection of a gated pod may only become narrower', async (t) => {
  const gated = (...names: string[]): PodSpec => ({ containers: [], schedulingGates: names.map((name) => ({ name })) })
  t.same(gateChangeProblems(gated('a', 'b'), gated('b')), [])
  t.same(gateChangeProblems(gated('a'), gated('a', 'x')).map(problemText), [
    "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'x'",
  ])
  const asking = (...values: string[]): NodeSelectorTerm => ({
    matchExpressions: values.map((value) => ({ key: 'place', operator: 'In', values: [value] })),
  })
  const bare = (spec: Partial<PodSpec>): PodSpec => ({ containers: [], ...spec })
  const problems = (old: Partial<PodSpec>, now: Partial<PodSpec>) =>
    narrowingProblems(bare(old), bare(now)).map(({ field }) => field.replace(/.*nodeSelectorTerms/, 'terms'))
  t.same(problems({ nodeSelector: { a: '1' } }, { nodeSelector: { a: '1', b: '2' } }), [])
  t.same(problems({ nodeSelector: { a: '1' } }, { nodeSelector: { b: '2' } }), ['spec.nodeSelector'])
  t.same(problems({}, requiringNodes(asking('roof'))), [])
  t.same(problems(requiringNodes(asking('roof')), requiringNodes(asking('roof', 'warm'))), [])
  t.same(problems(requiringNodes(asking('roof')), requiringNodes(asking('cellar'))), ['terms[0]'])
  t.same(problems(requiringNodes(asking('roof')), requiringNodes(asking('roof'), asking('cellar'))), ['terms'])
  t.same(problems(requiringNodes(asking('roof')), {}), ['terms'])
})

test('ephemeral containers are added; one that is there stays as it is', async (t) => {
  const debug = {
    name: 'debug',
    image: 'busybox:1.36',
    imagePullPolicy: 'IfNotPresent',
    terminationMessagePolicy: 'File',
  }
  const other = { ...debug, name: 'other' }
  const having = (...ephemeralContainers: Container[]) => {
    const stored = createdPod()
    return { ...stored, spec: { ...stored.spec, ...(ephemeralContainers.length > 0 && { ephemeralContainers }) } }
  }
  const problems = (old: Pod, now: Pod) => ephemeralChangeProblems(old, now).map(problemText)
  t.same(problems(having(), having()), [])
  t.same(problems(having(), having(debug)), [])
  t.same(problems(having(debug), having(debug, other)), [])
  t.same(problems(having(debug), having()), [
    'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be removed',
  ])
  t.same(problems(having(debug, other), having({ ...debug, image: 'busybox:1.37' }, other)), [
    'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be changed',
  ])
  t.match(problems(having(), having({ ...debug, image: '' })), [/^spec\.ephemeralContainers\[0\]\.image: Required/])
  const mirror = having()
  const annotations = { 'kubernetes.io/config.mirror': 'hash' }
  t.match(problems({ ...mirror, metadata: { ...mirror.metadata, annotations } }, having(debug)), [
    /Forbidden: static pods do not support ephemeral containers$/,
  ])
})

test('the deadline stays within its range, and a pod does not become a mirror pod', async (t) => {
  const old = createdPod()
  const deadline = (activeDeadlineSeconds: number) =>
    causes(() => update('pods', old, { ...old, spec: { ...old.spec, activeDeadlineSeconds } }))
  const range = 'must be between 1 and 2147483647, inclusive'
  t.same(deadline(2 ** 31), [`spec.activeDeadlineSeconds: Invalid value: 2147483648: ${range}`])
  t.same([deadline(2 ** 31 - 1), deadline(1)], [[], []])
  const annotations = { ...old.metadata.annotations, 'kubernetes.io/config.mirror': 'hash' }
  t.match(
    causes(() => update('pods', old, { ...old, metadata: { ...old.metadata, annotations } })),
    [/Forbidden: may not add, change or remove the mirror pod annotation$/],
  )
})

test('a change of the number of containers is the only problem that is named', async (t) => {
  const old = createdPod()
  const [container = { name: 'web', image: 'nginx:1' }] = old.spec.containers
  const more = {
    ...old,
    spec: { ...old.spec, hostNetwork: true, containers: [container, { ...container, name: 'b' }] },
  }
  t.same(
    causes(() => update('pods', old, more)),
    ['spec.containers: Forbidden: pod updates may not add or remove containers'],
  )
})

test('the deadline of a pod may stay as it is stored, and its image may be missing', async (t) => {
  const { spec } = createdPod({ activeDeadlineSeconds: 60 })
  const problems = (now: Partial<PodSpec>, old: PodSpec = spec) =>
    podChangeProblems({ ...createdPod(), spec: old }, { ...createdPod(), spec: { ...spec, ...now } }).map(problemText)
  t.same(problems({}), [])
  t.match(problems({ activeDeadlineSeconds: -1 }), [/must be between 1 and 2147483647, inclusive$/])
  t.same(problems({ activeDeadlineSeconds: -5 }, { ...spec, activeDeadlineSeconds: -5 }), [], 'as it is stored')
  const bare = spec.containers.map(({ image: _, ...container }) => container)
  t.same(problems({}, { ...spec, containers: bare }), [], 'an image is added')
})

test('a gated pod keeps what it asks of other pods, and what it asks of nodes is checked', async (t) => {
  const podAntiAffinity = {
    requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector: {}, topologyKey: 'kubernetes.io/hostname' }],
  }
  const gated = createdPod({ schedulingGates: [{ name: 'a' }], affinity: { podAntiAffinity } })
  const changed = (spec: Partial<PodSpec>) =>
    causes(() => update('pods', gated, { ...gated, spec: { ...gated.spec, ...spec } }))
  t.match(changed({ affinity: {} }), [/^spec.affinity: Forbidden: pod updates may not change fields other than/])
  const nodeAffinity = requiringNodes({ matchExpressions: [{ key: 'a', operator: 'Exists' }] }).affinity?.nodeAffinity
  t.same(changed({ affinity: { podAntiAffinity, ...(nodeAffinity && { nodeAffinity }) } }), [])
  const unclear = requiringNodes({ matchExpressions: [{ key: 'a', operator: 'Near' }] }).affinity?.nodeAffinity
  t.match(changed({ affinity: { podAntiAffinity, ...(unclear && { nodeAffinity: unclear }) } }), [/operator/])
  const open = createdPod({ schedulingGates: [{ name: 'a' }], nodeSelector: { disk: 'ssd' } })
  t.match(
    causes(() => update('pods', open, { ...open, spec: { ...open.spec, nodeSelector: {} } })),
    [/only additions to spec.nodeSelector are allowed/],
  )
})

test('what a client of Go leaves out of a pod, for it is empty, has not changed', async (t) => {
  const port = { containerPort: 80, hostPort: 0, hostIP: '' }
  const container = { name: 'main', image: 'busybox', env: [], args: [], stdin: false, ports: [port] }
  const old = createdPod({ nodeSelector: {}, hostNetwork: false, volumes: [], containers: [container] })
  const { nodeSelector: _, hostNetwork: __, volumes: ___, ...spec } = old.spec
  const containers = spec.containers.map(({ env, args, stdin, ...rest }) => ({
    ...rest,
    ports: [{ containerPort: 80, protocol: 'TCP' }],
  }))
  t.same(
    fields(() => update('pods', old, { ...old, spec: { ...spec, containers } })),
    [],
  )
  t.same(
    fields(() => update('pods', old, { ...old, spec: { ...spec, hostIPC: true } })),
    ['spec.hostIPC'],
    'only what is empty',
  )
  const debugger_ = { name: 'debugger', image: 'busybox' }
  const withDebugger = (more: object): Pod => ({
    ...old,
    spec: { ...old.spec, ephemeralContainers: [{ ...debugger_, ...more }] },
  })
  const defaults = {
    imagePullPolicy: 'Always',
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
  }
  t.same(ephemeralChangeProblems(withDebugger({ ...defaults, args: [], tty: false }), withDebugger(defaults)), [])
})

test('a deadline may not become 0, a negative grace period may become 1, a gated pod keeps valid selectors', async (t) => {
  const hurried = createdPod({ activeDeadlineSeconds: 60 })
  t.same(
    causes(() => update('pods', hurried, { ...hurried, spec: { ...hurried.spec, activeDeadlineSeconds: 0 } })),
    ['spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive'],
  )
  const old = createdPod({ terminationGracePeriodSeconds: -1 })
  const graced = (seconds: number) =>
    fields(() => update('pods', old, { ...old, spec: { ...old.spec, terminationGracePeriodSeconds: seconds } }))
  t.same(graced(1), [])
  t.same(graced(2), ['spec.terminationGracePeriodSeconds'])
  const gated = createdPod({ schedulingGates: [{ name: 'example.com/wait' }] })
  t.same(
    fields(() => update('pods', gated, { ...gated, spec: { ...gated.spec, nodeSelector: { 'bad key!': 'x' } } })),
    ['spec.nodeSelector'],
  )
})
