import { test } from 'tap'
import { isApiError } from '../../api/api-error.ts'
import type { CertificateSigningRequest } from '../../api/certificate-signing-request.ts'
import type { ConfigMap } from '../../api/config-map.ts'
import { decode } from '../../api/decode.ts'
import { administrator } from '../../api/identity.ts'
import type { Container, Pod, PodSpec, Toleration } from '../../api/pod.ts'
import { PodSchema } from '../../api/pod.ts'
import { type ResourceName, type ResourceTypes, resources } from '../../api/resources.ts'
import type { Secret } from '../../api/secret.ts'
import { aLease, aNode } from '../../api/testing/builders.ts'
import { prepareForCreate, prepareForUpdate } from './admission.ts'

type AnyObject = ResourceTypes[ResourceName]

const create = (resource: ResourceName, object: AnyObject) =>
  prepareForCreate(resources[resource], object, { nowMs: 0, requester: administrator })
const update = (resource: ResourceName, old: AnyObject, now: AnyObject) =>
  prepareForUpdate(resources[resource], old, now)

/** `field: message` of each cause of the refusal. */
const causes = (act: () => unknown): readonly string[] => {
  try {
    act()
    return []
  } catch (error) {
    if (!isApiError(error, 'Invalid')) throw error
    return (error.details?.causes ?? []).map(({ field, message }) => `${field}: ${message}`)
  }
}
const fields = (act: () => unknown) => causes(act).map((cause) => cause.slice(0, cause.indexOf(': ')))

const pod = (spec: Partial<PodSpec> = {}, container: Partial<Container> = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'default' },
  spec: { containers: [{ name: 'web', image: 'nginx:1.27', ...container }], ...spec },
})
const createdPod = (spec?: Partial<PodSpec>, container?: Partial<Container>): Pod => {
  const made = create('pods', pod(spec, container))
  if (made.kind !== 'Pod') throw new Error('Not a pod')
  return made
}

test('a new node is not ready until a controller has seen it Ready, whatever it says of itself', async (t) => {
  const notReady = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' } as const
  const camera = { key: 'camera', effect: 'NoExecute' } as const
  const { metadata, ...pi } = aNode({ ready: 'True', taints: [camera] })
  const node = { ...pi, metadata: { name: metadata.name } }
  t.match(create('nodes', node), { spec: { taints: [camera, notReady] } })
  t.match(create('nodes', { ...node, spec: { taints: [notReady] } }), { spec: { taints: [notReady] } })
  t.same(update('nodes', aNode(), aNode({ taints: [camera] })), aNode({ taints: [camera] }), 'only at its creation')
})

test('a new pod gets what its author left out', async (t) => {
  const made = createdPod(
    {},
    { ports: [{ containerPort: 80 }], resources: { limits: { cpu: '1' }, requests: { memory: '1Mi' } } },
  )
  t.same(made.spec, {
    containers: [
      {
        name: 'web',
        image: 'nginx:1.27',
        imagePullPolicy: 'IfNotPresent',
        ports: [{ containerPort: 80, protocol: 'TCP' }],
        resources: { limits: { cpu: '1' }, requests: { cpu: '1', memory: '1Mi' } },
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
      },
    ],
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    dnsPolicy: 'ClusterFirst',
    schedulerName: 'default-scheduler',
    securityContext: {},
    tolerations: [
      { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
      { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
    ],
  })
  t.same(made.status, { phase: 'Pending', qosClass: 'Burstable' })
  t.ok(decode(PodSchema, made).ok, 'it is still a pod')
})

test('the pull policy follows the tag, and a port of the host network is a port of the host', async (t) => {
  const policy = (image: string) => createdPod({}, { image }).spec.containers[0]?.imagePullPolicy
  t.equal(policy('nginx'), 'Always')
  t.equal(policy('registry.lan:5000/nginx'), 'Always')
  t.equal(policy('nginx:latest'), 'Always')
  t.equal(policy('registry.lan:5000/nginx:1'), 'IfNotPresent')
  t.equal(policy(`nginx@sha256:${'0'.repeat(64)}`), 'IfNotPresent')
  const onHost = createdPod({ hostNetwork: true }, { ports: [{ containerPort: 80 }] })
  t.equal(onHost.spec.containers[0]?.ports?.[0]?.hostPort, 80)
})

test('a pod that says how long it waits for its node is believed', async (t) => {
  const keys = (...tolerations: Toleration[]) =>
    createdPod({ tolerations }).spec.tolerations?.map(({ key }) => key?.replace('node.kubernetes.io/', ''))
  t.same(keys({ operator: 'Exists' }), [undefined])
  t.same(keys({ key: 'node.kubernetes.io/not-ready', operator: 'Exists' }), ['not-ready', 'unreachable'])
  t.same(keys({ operator: 'Exists', effect: 'NoSchedule' }), [undefined, 'not-ready', 'unreachable'])
})

test('all that is wrong with a pod is said at once, with the field', async (t) => {
  const wrong = pod(
    {
      containers: [
        {
          name: 'Web',
          ports: [{ containerPort: 0 }, { containerPort: 80, hostPort: 70000, protocol: 'ICMP', name: 'a' }],
          env: [{ name: 'A=B' }],
          imagePullPolicy: 'Sometimes',
          resources: { requests: { cpu: '2', memory: '-1' }, limits: { cpu: '1', 'hugepages-2Mi': '1' } },
        },
        { name: 'twin', image: ' nginx', ports: [{ containerPort: 1, hostPort: 5 }] },
        { name: 'twin', image: 'nginx', ports: [{ containerPort: 2, hostPort: 5 }] },
      ],
      restartPolicy: 'Maybe',
      terminationGracePeriodSeconds: -1,
      nodeSelector: { 'bad key': 'x' },
      tolerations: [
        { operator: 'Equal', value: 'x' },
        { key: 'a', operator: 'Exists', value: 'x' },
        { key: 'a', operator: 'Like', effect: 'Never', tolerationSeconds: 1 },
      ],
    },
    {},
  )
  t.same(
    fields(() => create('pods', wrong)),
    [
      'spec.containers[0].name',
      'spec.containers[0].image',
      'spec.containers[0].imagePullPolicy',
      'spec.containers[0].ports[0].containerPort',
      'spec.containers[0].ports[1].hostPort',
      'spec.containers[0].ports[1].protocol',
      'spec.containers[0].env[0].name',
      'spec.containers[0].resources.limits[hugepages-2Mi]',
      'spec.containers[0].resources.requests[hugepages-2Mi]',
      'spec.containers[0].resources.requests[memory]',
      'spec.containers[0].resources.requests',
      'spec.containers[1].image',
      'spec.containers[2].name',
      'spec.containers[2].ports[0].hostPort',
      'spec.restartPolicy',
      'spec.terminationGracePeriodSeconds',
      'spec.nodeSelector',
      'spec.tolerations[0].operator',
      'spec.tolerations[1].value',
      'spec.tolerations[2].operator',
      'spec.tolerations[2].effect',
      'spec.tolerations[2].effect',
    ],
  )
  t.same(
    causes(() => create('pods', pod({ containers: [] }))),
    ['spec.containers: Required value'],
  )
  t.same(
    causes(() => create('pods', pod({}, { image: '' }))),
    ['spec.containers[0].image: Required value'],
  )
  t.same(
    causes(() => create('pods', pod({}, { resources: { requests: { cpu: '2' }, limits: { cpu: '1' } } }))),
    ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
  )
})

test('a gated pod says so, and may only be let through or become choosier; its priority is kept for it', async (t) => {
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

test('label keys of a neighbourly term become part of its selector', async (t) => {
  const labelSelector = { matchLabels: { app: 'web' } }
  const term = { topologyKey: 'zone', labelSelector, matchLabelKeys: ['version', 'none'], mismatchLabelKeys: ['team'] }
  const podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term] }
  const labelled = pod({ affinity: { podAntiAffinity } })
  const labels = { version: '2', team: 'red' }
  const made = create('pods', { ...labelled, metadata: { ...labelled.metadata, labels } })
  const matchExpressions = [
    { key: 'version', operator: 'In', values: ['2'] },
    { key: 'team', operator: 'NotIn', values: ['red'] },
  ]
  const required = [{ topologyKey: 'zone', labelSelector: { ...labelSelector, matchExpressions } }]
  t.match(made, {
    spec: { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } } },
  })
})

test('what our nodes cannot do yet is refused by name', async (t) => {
  const asked = pod(
    {
      volumes: [{ name: 'v', nfs: { server: 's', path: '/' } }],
      hostUsers: false,
      securityContext: { seLinuxOptions: { level: 's0' } },
      os: { name: 'windows' },
    },
    {
      volumeMounts: [{ name: 'v', mountPath: '/v', recursiveReadOnly: 'Enabled' }],
      securityContext: { procMount: 'Unmasked' },
    },
  )
  t.same(
    fields(() => create('pods', asked)),
    [
      'spec.volumes[0].nfs',
      'spec.hostUsers',
      'spec.securityContext.seLinuxOptions',
      'spec.os.name',
      'spec.containers[0].volumeMounts[0].recursiveReadOnly',
      'spec.containers[0].securityContext.procMount',
    ],
  )
  t.same(
    causes(() => create('pods', pod({ hostUsers: false }))),
    ['spec.hostUsers: Forbidden: is not supported by this version of Bramble'],
  )
})

test('what asks for nothing, and what we can do, is let through', async (t) => {
  createdPod(
    {
      volumes: [],
      securityContext: {},
      affinity: {},
      hostPID: false,
      imagePullSecrets: [],
      serviceAccountName: 'default',
      os: { name: 'linux' },
      priority: 0,
      nodeName: 'pi-01',
      enableServiceLinks: true,
    },
    {
      volumeMounts: [],
      securityContext: {},
      lifecycle: {},
      tty: true,
      stdin: true,
      command: ['a'],
      args: ['b'],
      workingDir: '/',
      resources: { limits: { 'ephemeral-storage': '2Gi' }, requests: { 'ephemeral-storage': '1Gi' } },
      ports: [{ containerPort: 80, hostPort: 8080, hostIP: '127.0.0.1' }],
    },
  )
  t.pass('no refusal')
})

test('names, labels and annotations are checked', async (t) => {
  const named = (metadata: object) =>
    fields(() => create('pods', { ...pod(), metadata: { namespace: 'default', ...metadata } }))
  t.same(named({}), ['metadata.name'])
  t.same(named({ name: 'Web' }), ['metadata.name'])
  t.same(named({ name: 'web', labels: { 'a/b/c': 'x', ok: '-x' } }), ['metadata.labels', 'metadata.labels'])
  t.same(named({ name: 'web', annotations: { 'Upper.example/ok': 'any text at all' } }), [])
  t.same(named({ name: 'web', annotations: { 'a b': '', big: 'x'.repeat(262145) } }), [
    'metadata.annotations',
    'metadata.annotations',
  ])
  t.same(named({ name: 'web', namespace: '' }), ['metadata.namespace'])
  const node = aNode()
  const fresh = (metadata: object) => ({ ...node, metadata: { name: 'pi', ...metadata } })
  t.same(
    fields(() => create('nodes', fresh({ namespace: 'default' }))),
    ['metadata.namespace'],
  )
  const spaceNamed = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }) as const
  t.same(
    fields(() => create('namespaces', spaceNamed('a.b'))),
    ['metadata.name'],
  )
})

test("what is the server's to say is not taken from a client", async (t) => {
  const claimed = {
    uid: 'mine',
    creationTimestamp: '2000-01-01T00:00:00Z',
    generation: 9,
    deletionTimestamp: '2000-01-01T00:00:00Z',
  }
  const made = create('pods', {
    ...pod(),
    metadata: { name: 'web', namespace: 'default', ...claimed },
    status: { phase: 'Running' },
  })
  t.same(made.metadata, { name: 'web', namespace: 'default' })
  t.match(made, { status: { phase: 'Pending' } })
  t.throws(() => create('pods', { ...pod(), metadata: { name: 'web', namespace: 'default', resourceVersion: '5' } }), {
    message: 'resourceVersion should not be set on objects to be created',
  })
  const old = {
    ...createdPod(),
    metadata: { name: 'web', namespace: 'default', uid: 'u', deletionTimestamp: '2026-01-01T00:00:00Z' },
  }
  const now = { ...old, metadata: { name: 'web', namespace: 'default', labels: { a: 'b' } } }
  t.same(update('pods', old, now).metadata, { ...now.metadata, uid: 'u', deletionTimestamp: '2026-01-01T00:00:00Z' })
  t.same(
    fields(() => update('pods', old, { ...now, metadata: { ...now.metadata, finalizers: ['a/b'] } })),
    ['metadata.finalizers'],
  )
})

test('a pod stays what it is, but for its images and what it tolerates', async (t) => {
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

test('taints are told apart by key and effect', async (t) => {
  const node = { ...aNode(), metadata: { name: 'pi' } }
  const tainted = (...taints: { key: string; effect: 'NoSchedule' | 'NoExecute'; value?: string }[]) =>
    fields(() => update('nodes', node, { ...node, spec: { taints } }))
  t.same(tainted({ key: 'a', effect: 'NoSchedule' }, { key: 'a', effect: 'NoExecute' }), [])
  t.same(tainted({ key: 'a', effect: 'NoSchedule', value: '1' }, { key: 'a', effect: 'NoSchedule' }), [
    'spec.taints[1]',
  ])
  t.same(tainted({ key: '', effect: 'NoSchedule' }, { key: 'a b', effect: 'NoSchedule', value: '-' }), [
    'spec.taints[0].key',
    'spec.taints[1].key',
    'spec.taints[1].value',
  ])
  const known = { ...node, spec: { providerID: 'a' } }
  t.same(
    fields(() => update('nodes', known, { ...node, spec: { providerID: 'b' } })),
    ['spec.providerID'],
  )
})

test('secrets are kept as bytes, and what is immutable stays', async (t) => {
  const secret = (over: Partial<Secret>): Secret => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's', namespace: 'default' },
    ...over,
  })
  const made = create('secrets', secret({ data: { a: 'MQ==', b: 'Mg==' }, stringData: { b: 'ü' } }))
  t.same(made, secret({ type: 'Opaque', data: { a: 'MQ==', b: 'w7w=' } }))
  t.same(
    fields(() => create('secrets', secret({ data: { 'a/b': '' } }))),
    ['data[a/b]'],
  )
  t.same(
    fields(() => update('secrets', made, secret({ type: 'other' }))),
    ['type'],
  )
  const login = (json: string) => Buffer.from(json).toString('base64')
  const wants = (type: string, data: Secret['data'] = {}) =>
    fields(() => create('secrets', secret({ type: `kubernetes.io/${type}`, data })))
  t.same(wants('dockerconfigjson'), ['data[.dockerconfigjson]'])
  for (const wrong of ['nonsense', '[]', 'null']) {
    t.same(wants('dockerconfigjson', { '.dockerconfigjson': login(wrong) }), ['data[.dockerconfigjson]'])
  }
  t.ok(create('secrets', secret({ type: 'kubernetes.io/dockercfg', data: { '.dockercfg': login('{}') } })))
  t.same(wants('tls', { 'tls.crt': '' }), ['data[tls.key]'])
  t.same(wants('ssh-auth', { 'ssh-privatekey': '' }), ['data[ssh-privatekey]'])
  t.same(wants('basic-auth'), ['data[username]', 'data[password]'])
  t.ok(create('secrets', secret({ type: 'kubernetes.io/basic-auth', data: { username: 'YQ==' } })))
  t.same(wants('service-account-token'), ['metadata.annotations[kubernetes.io/service-account.name]'])
  const frozen = secret({ type: 'Opaque', data: { a: 'MQ==' }, immutable: true })
  t.same(
    fields(() => update('secrets', frozen, secret({ type: 'Opaque', data: {} }))),
    ['immutable', 'data'],
  )

  const map = (over: Partial<ConfigMap>): ConfigMap => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'm', namespace: 'default' },
    ...over,
  })
  t.same(
    fields(() => create('configmaps', map({ data: { a: '1' }, binaryData: { a: 'MQ==' } }))),
    ['binaryData[a]'],
  )
  t.same(
    fields(() => create('configmaps', map({ data: { a: 'x'.repeat(1024 * 1024 + 1) } }))),
    ['data'],
  )
})

test('a certificate request says who asked, whatever it claims', async (t) => {
  const pem = Buffer.from('-----BEGIN CERTIFICATE REQUEST-----\n').toString('base64')
  const asks = (spec: object): CertificateSigningRequest => ({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'node-csr-aB_c' },
    spec: { request: pem, signerName: 'kubernetes.io/kube-apiserver-client-kubelet', usages: ['client auth'], ...spec },
    status: { certificate: 'LS0t' },
  })
  const made = create('certificatesigningrequests', asks({ username: 'system:node:pi', groups: ['system:nodes'] }))
  t.match(made, { spec: { username: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] } })
  t.notOk('status' in made)
  const refused = fields(() =>
    create('certificatesigningrequests', asks({ request: 'MQ==', signerName: 'x', usages: [], expirationSeconds: 1 })),
  )
  t.same(refused, ['spec.request', 'spec.signerName', 'spec.usages', 'spec.expirationSeconds'])
  t.same(
    fields(() => update('certificatesigningrequests', made, asks({ username: 'eve' }))),
    ['spec'],
  )
})

test('the other kinds get their few words', async (t) => {
  const space = create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'edge' } })
  t.match(space, { metadata: { labels: { 'kubernetes.io/metadata.name': 'edge' } }, status: { phase: 'Active' } })
  const lease = aLease({ spec: { leaseDurationSeconds: 0, leaseTransitions: -1 } })
  const fresh = { ...lease, metadata: { name: 'pi', namespace: 'kube-node-lease' } }
  t.same(
    fields(() => create('leases', fresh)),
    ['spec.leaseDurationSeconds', 'spec.leaseTransitions'],
  )
})

test('init containers are checked as containers are; only sidecars may be probed', async (t) => {
  const probe = { exec: { command: ['true'] } }
  const initContainers = [
    { name: 'main', image: 'x' },
    { name: 'i', image: '', restartPolicy: 'Never' },
    { name: 'j', image: 'x', lifecycle: { preStop: probe } },
    { name: 'j', image: 'x', restartPolicy: 'Always' },
  ]
  const asked = pod({ initContainers }, { restartPolicy: 'Always' })
  const expected = [
    'spec.containers[0].restartPolicy',
    'spec.initContainers[3].name',
    'spec.initContainers[1].image',
    'spec.initContainers[1].restartPolicy',
    'spec.initContainers[2].lifecycle',
  ]
  const told = fields(() => create('pods', asked))
  t.same(
    expected.filter((field) => !told.includes(field)),
    [],
  )
})

test('probes and hooks have Kubernetes’ defaults and limits', async (t) => {
  const full = createdPod({}, { readinessProbe: { httpGet: { port: 'web' } } })
  t.same(full.spec.containers[0]?.readinessProbe, {
    httpGet: { port: 'web', path: '/', scheme: 'HTTP' },
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  })
  const wrong = pod(
    { terminationGracePeriodSeconds: 10 },
    {
      livenessProbe: { exec: { command: ['true'] }, tcpSocket: { port: 0 }, successThreshold: 2 },
      readinessProbe: { periodSeconds: -1, terminationGracePeriodSeconds: 5 },
      startupProbe: { httpGet: { port: 80, scheme: 'FTP', httpHeaders: [{ name: 'a b', value: '' }] } },
      lifecycle: { preStop: { sleep: { seconds: 11 } }, postStart: { exec: {} } },
    },
  )
  const told = fields(() => create('pods', wrong)).map((field) => field.replace('spec.containers[0].', ''))
  t.same(told, [
    'livenessProbe.tcpSocket',
    'livenessProbe.tcpSocket.port',
    'livenessProbe.successThreshold',
    'readinessProbe',
    'readinessProbe.periodSeconds',
    'readinessProbe.terminationGracePeriodSeconds',
    'startupProbe.httpGet.scheme',
    'startupProbe.httpGet.httpHeaders[0].name',
    'lifecycle.postStart.exec.command',
    'lifecycle.preStop.sleep.seconds',
  ])
})

test('a device is asked for whole, and not shared', async (t) => {
  const asks = (resources: object) => causes(() => create('pods', pod({}, { resources })))
  createdPod({}, { resources: { limits: { 'bramble.dev/gpiochip0': 1 } } })
  t.match(asks({ limits: { 'bramble.dev/gpiochip0': '500m' } }), [
    /limits\[bramble\.dev\/gpiochip0\]: .*must be an integer/,
  ])
  t.match(asks({ requests: { 'bramble.dev/gpiochip0': 1 } }), [/resources\.limits: Required value: Limit must be set/])
})

test('huge pages are refused, with what to do instead', async (t) => {
  t.match(
    causes(() => create('pods', pod({}, { resources: { limits: { 'hugepages-2Mi': '4Mi', memory: '1Mi' } } }))),
    [/limits\[hugepages-2Mi\]: Forbidden: .*remove the request/, /requests\[hugepages-2Mi\]/],
  )
})
